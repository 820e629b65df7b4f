"""Unused environment variables with the prefix `DRAFTSMAN_`, which are probably typos.

An unknown name with `__` is a setting and is refused like an unknown key of the file. So is a name
similar to a variable of `DECIDING` that is unset, because draftsman would silently use another
database or configuration. All others cause a warning, as other programs may use the prefix.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from draftsman.errors import ConfigError

PREFIX: Final = "DRAFTSMAN_"
DECIDING: Final = frozenset({"CONFIG", "DATABASE_URL", "DATA_DIR"})
"""Variables that select the database and the configuration."""
CLOSE: Final = 0.7
"""Similarity, by difflib, from which a name counts as a typo of another."""
KUBERNETES: Final = re.compile(
    r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)\Z"
)
"""Variables that Kubernetes sets for a service whose name begins with `draftsman`."""


@dataclass(frozen=True, slots=True)
class UnknownVariable:
    """An unused variable; `near` is a similar known variable."""

    name: str
    near: str | None

    @property
    def hint(self) -> str:
        """The suggestion for the user."""
        return f"did you mean {self.near}?" if self.near else "see config/draftsman.toml"


def refuse(variables: Iterable[UnknownVariable], environment: Mapping[str, str]) -> None:
    """Raise ConfigError for an unknown setting, or a probable typo of a variable of `DECIDING`."""
    names = {name.upper() for name, value in environment.items() if value}
    for unknown in variables:
        near = (unknown.near or "").removeprefix(PREFIX)
        if "__" in unknown.name or (near in DECIDING and f"{PREFIX}{near}" not in names):
            raise ConfigError(f"{unknown.name}: unknown setting; {unknown.hint}")


def unread(
    environment: Mapping[str, str], model: type[BaseModel], named: frozenset[str]
) -> list[UnknownVariable]:
    """Return the unused variables, except empty variables and those of Kubernetes.

    `named` are variables that the configuration uses for secrets or agents.
    """
    known = {"CONFIG", *_names(model)}
    tables = {name.upper() for name, field in model.model_fields.items() if _is_table(field)}
    unknown = []
    for name in sorted(name for name, value in environment.items() if value):
        key = name.upper().removeprefix(PREFIX)
        if not name.upper().startswith(PREFIX) or name in named or KUBERNETES.match(key):
            continue
        if key not in known and key.partition("__")[0] not in tables:
            unknown.append(UnknownVariable(name, _near(key, known)))
    return unknown


def _near(key: str, known: set[str]) -> str | None:
    """Return the most similar variable, else the only variable with the same last part."""
    same = [name for name in known if name.endswith((f"__{key}", f"__{key.rpartition('__')[2]}"))]
    close = difflib.get_close_matches(key, known, 1, CLOSE)
    match = close[0] if close else same[0] if len(same) == 1 else None
    return f"{PREFIX}{match}" if match else None


def _names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the names of all settings and tables, with `__` between the levels."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{name.upper()}"
        yield key
        for inner in _models(field):
            yield from _names(inner, f"{key}__")


def _models(field: FieldInfo) -> Iterator[type[BaseModel]]:
    for annotation in (field.annotation, *get_args(field.annotation)):
        kind = getattr(annotation, "__origin__", annotation)  # of Annotated
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind


def _is_table(field: FieldInfo) -> bool:
    """Return whether pydantic validates the keys of the field."""
    return get_origin(field.annotation) is dict or any(_models(field))
