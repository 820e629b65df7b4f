"""JSON Schema: does a value fit, and if not, where."""

from __future__ import annotations

import json
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

NOWHERE: Final[Registry[Any]] = Registry()
"""Knows no other schema, and fetches none."""
WIDTH: Final = 300
"""Characters of an explanation at most."""


def problem(schema: Any, value: Any) -> str | None:
    """Return in one line why the value does not fit; None when it does."""
    try:
        Draft202012Validator.check_schema(schema)
        found = best_match(Draft202012Validator(schema, registry=NOWHERE).iter_errors(value))
    except SchemaError as error:
        return _line(f"the schema itself is wrong: {error.message}")
    except (Unresolvable, RecursionError) as error:
        return _line(f"the schema cannot be followed: {error}")
    return None if found is None else _line(_told(found))


def read_json(text: str | bytes) -> Any:
    """Return what a text holds as JSON; raises ValueError. NaN and infinities are none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _told(error: ValidationError) -> str:
    where = "".join(f"[{part!r}]" for part in error.absolute_path)
    return f"at {where}: {error.message}" if where else str(error.message)


def _line(text: str) -> str:
    one = " ".join(text.split())
    return one if len(one) <= WIDTH else one[: WIDTH - 1] + "…"
