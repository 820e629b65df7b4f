"""Variables that begin with `DRAFTSMAN_` and that nothing reads: most likely a typing error.

A wrong name that contains `__` is meant as a setting, and refused like an unknown key of the file.
So is a name close to one of `DECIDING`, as long as that one is unset: with it draftsman would work,
without a word, on another database or with another configuration. All others are only reported:
other programs may have variables with this prefix.
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
"""What decides on which database, and with which configuration, everything is done."""
CLOSE: Final = 0.7
"""Similarity, by difflib, from which a name is taken for a typing error of another."""
KUBERNETES: Final = re.compile(
    r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)\Z"
)
"""What Kubernetes sets in every container for a service whose name begins with `draftsman`."""


@dataclass(frozen=True, slots=True)
class UnknownVariable:
    """A variable that nothing reads; `near` is the variable that may be meant."""

    name: str
    near: str | None

    @property
    def hint(self) -> str:
        """Return what to do, in words."""
        return f"did you mean {self.near}?" if self.near else "see config/draftsman.toml"


def refuse(found: Iterable[UnknownVariable], environment: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that changes silently what is worked on; see above."""
    given = {name.upper() for name, value in environment.items() if value}
    for unknown in found:
        near = (unknown.near or "").removeprefix(PREFIX)
        if "__" in unknown.name or (near in DECIDING and f"{PREFIX}{near}" not in given):
            raise ConfigError(f"{unknown.name}: there is no such setting; {unknown.hint}")


def unread(
    environment: Mapping[str, str], model: type[BaseModel], named: frozenset[str]
) -> list[UnknownVariable]:
    """Return the variables that nothing reads, but for empty ones and those of Kubernetes.

    `named` are variables that the configuration itself names, for secrets or agents.
    """
    known = {"CONFIG", *_names(model)}
    tables = {name.upper() for name, field in model.model_fields.items() if _is_table(field)}
    found = []
    for name in sorted(name for name, value in environment.items() if value):
        key = name.upper().removeprefix(PREFIX)
        if not name.upper().startswith(PREFIX) or name in named or KUBERNETES.match(key):
            continue
        if key not in known and key.partition("__")[0] not in tables:
            found.append(UnknownVariable(name, _near(key, known)))
    return found


def _near(key: str, known: set[str]) -> str | None:
    """Return the variable with the same last part, else the most similar one."""
    same = [name for name in known if name.endswith((f"__{key}", f"__{key.rpartition('__')[2]}"))]
    close = difflib.get_close_matches(key, known, 1, CLOSE)
    found = close[0] if close else same[0] if len(same) == 1 else None
    return f"{PREFIX}{found}" if found else None


def _names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the names of every setting and table, with `__` between the levels."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{name.upper()}"
        yield key
        for inner in _models(field):
            yield from _names(inner, f"{key}__")


def _models(field: FieldInfo) -> Iterator[type[BaseModel]]:
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind


def _is_table(field: FieldInfo) -> bool:
    """Return whether pydantic itself checks the keys inside, and refuses an unknown one."""
    return get_origin(field.annotation) is dict or any(_models(field))
