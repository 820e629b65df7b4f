"""Error messages for invalid configuration."""

from __future__ import annotations

import difflib
import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from draftsman.errors import ConfigError
from draftsman.field_errors import describe_error

_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_SECONDS)})")
KEY: Final = "[key]"
"""The part of a location that means the key itself."""
SECRET: Final = ("url", "secret", "token", "key")
"""Suffixes of keys whose invalid value may be a secret."""


def explain(error: ValidationError, path: Path | None, model: type[BaseModel]) -> str:
    """Return the file or variable, the key, the value and the allowed values.

    `path` is the file, `model` the model of the configuration.
    """
    first = error.errors()[0]
    location = tuple(str(part) for part in first["loc"])
    key = ".".join(part for part in location if part != KEY) or "configuration"
    origin = _variable_of(location) or (str(path) if path else "configuration")
    if first["type"] == "extra_forbidden":
        allowed = ", ".join(_allowed(first["loc"], model))
        return f"{origin}: unknown key {key!r}; allowed here: {allowed}"
    problem = describe_error(first).replace("an object of keys and values", "a table")
    problem += _unit(first)
    return f"{origin}: {key}{_shown(first)}: {problem}"


def _variable_of(location: tuple[str, ...]) -> str | None:
    """Return the set variable that contains the key, or None."""
    names = {name.upper(): name for name in os.environ}
    lengths = range(len(location), 0, -1)
    prefixes = ("DRAFTSMAN_" + "__".join(location[:length]).upper() for length in lengths)
    return next((names[name] for name in prefixes if name in names), None)


def _shown(error: ErrorDetails) -> str:
    """Return the invalid value, cut; nothing for tables, lists and possible secrets."""
    value = error["input"]
    location = error["loc"]
    hidden = (
        "env" in location
        or KEY in location
        or str(location[-1] if location else "").endswith(SECRET)
    )
    if hidden or not isinstance(value, str | int | float):
        return ""
    return f" is {reprlib.repr(value)}"


def _unit(error: ErrorDetails) -> str:
    """Return the unit and value of a duration that was given with a unit: settings have seconds."""
    duration = _DURATION.fullmatch(str(error["input"]).strip().lower())
    if duration is None or error["type"] not in ("float_parsing", "int_parsing"):
        return ""
    return f" of seconds, here {round(float(duration[1]) * _SECONDS[duration[2]]):d}"


def unparsable(error: SettingsError) -> str:
    """Return an error with the possible variables, as pydantic reports only the table."""
    table = re.search(r'field "(\w+)"', str(error))
    prefix = f"DRAFTSMAN_{table[1] if table else ''}".upper()
    names = sorted(name for name in os.environ if name.upper().startswith(prefix))
    return f"{', '.join(names)}: lists and tables must be JSON here, such as '[\"default\"]'"


def _allowed(location: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """Return the allowed keys of the table with the unknown key."""
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        for candidate in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                model = candidate
    return sorted(model.model_fields)


# Unused environment variables with the prefix `DRAFTSMAN_`, which are probably typos.
#
# An unknown name with `__` is a setting and is refused like an unknown key of the file. So is a
# name similar to a variable of `DECIDING` that is unset, because draftsman would silently use
# another database or configuration. All others cause a warning, as other programs may use the
# prefix.


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
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind


def _is_table(field: FieldInfo) -> bool:
    """Return whether pydantic validates the keys of the field."""
    return get_origin(field.annotation) is dict or any(_models(field))
