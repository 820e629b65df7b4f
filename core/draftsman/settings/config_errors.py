"""Error messages for invalid configuration."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from draftsman.errors import with_hint
from draftsman.field_errors import describe_error
from draftsman.formats.near_names import near_or_all
from draftsman.settings.section import Section

_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_SECONDS)})")
KEY: Final = "[key]"
"""The part of a location that means the key itself."""
SECRET: Final = ("url", "secret", "token", "key")
"""Suffixes of keys whose invalid value may be a secret."""


def explain(
    error: ValidationError, path: Path | None, model: type[BaseModel], tables: Mapping[str, Any]
) -> str:
    """Return the file or variable, and each wrong key with its value and the allowed values.

    `path` is the file with these tables, `model` the model of the configuration.
    """
    problems: dict[tuple[object, ...], tuple[str, str]] = {}
    for item in _all_errors(error, model, tables):
        is_unknown = item["type"] == "extra_forbidden"
        key = item["loc"] if is_unknown else item["loc"][:2]  # a key may have several types
        problems.setdefault(key, _explain_error(item, path, model, tables))
    text = ""
    last = ""
    for origin, problem in problems.values():
        line = problem if origin == last else f"{origin}: {problem}"
        text = with_hint(text, line) if text else line
        last = origin
    return text


def _all_errors(
    error: ValidationError, model: type[BaseModel], tables: Mapping[str, Any]
) -> list[ErrorDetails]:
    """Return the errors, and those that are found only once these keys are left out.

    A table is compared with others only when all its keys are valid.
    """
    found = error.errors()
    rest = deepcopy(dict(tables))
    new = found
    while sum(_leave_out(rest, item["loc"]) for item in new):
        try:
            model(**rest)
        except ValidationError as later:
            known = {item["loc"] for item in found}
            errors = later.errors()
            new = [
                item for item in errors if item["loc"] not in known and item["type"] != "missing"
            ]
            found = found + new
        else:
            break
    return found


def _leave_out(tables: Any, location: tuple[int | str, ...]) -> bool:
    """Delete the key of an error; False for one that is not there, or a table with a name.

    Other tables may refer to the name, and would be wrong only without it.
    """
    *parents, last = [part for part in location if part != KEY] or [""]
    for part in parents:
        if not isinstance(tables, dict) or not isinstance(tables.get(part), dict):
            last = part
            break
        tables = tables[part]
    if not isinstance(tables, dict) or last not in tables:
        return False
    if len(location) > 1 and isinstance(tables[last], dict):
        return False
    del tables[last]
    return True


def _explain_error(
    error: ErrorDetails, path: Path | None, model: type[BaseModel], tables: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the file or variable, and what is wrong in it."""
    location = tuple(str(part) for part in error["loc"])
    key = ".".join(part for part in location if part != KEY) or "configuration"
    origin = _variable_of(location) or (str(path) if path else "configuration")
    if error["type"] == "extra_forbidden":
        joined = "_".join(location)
        if joined in model.model_fields:  # [database] url for database_url
            return origin, f"unknown key {key!r}; did you mean {joined}, above the tables?"
        allowed = _allowed(error["loc"], model, tables)
        return origin, f"unknown key {key!r}{near_or_all(location[-1], allowed, 'allowed here', 1)}"
    problem = describe_error(error).replace("an object of keys and values", "a table")
    problem += _unit(error)
    return origin, f"{key}{_shown(error)}: {problem}"


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


def _allowed(location: tuple[int | str, ...], model: type[BaseModel], table: Any) -> list[str]:
    """Return the allowed keys of the table with the unknown key."""
    for part in location[:-1]:
        table = table.get(part) if isinstance(table, Mapping) else None
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        for annotation in (field.annotation, *getattr(field.annotation, "__args__", ())):
            candidate = getattr(annotation, "__origin__", annotation)  # of Annotated
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                model = candidate
    if issubclass(model, Section):
        model = model.for_table(table)
    return sorted(model.model_fields)
