"""JSON Schema of the data of classes, as `as_data` returns it."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]
_PLAIN: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    timedelta: {"type": "string"},
}


class _Names(dict[str, Any]):
    """The names in annotations of a module; one that only type checkers import is any value."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        return Any


def schema_of(kind: Any) -> Schema:
    """Return the schema of a type; {} for one that may be any value."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object(kind)
    if hasattr(kind, "model_json_schema"):
        return {**kind.model_json_schema(mode="serialization")}
    if kind in _PLAIN:
        return {**_PLAIN[kind]}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin in (Union, UnionType):
        return {"anyOf": [*map(schema_of, arguments)]}
    if not isinstance(origin, type):
        return {"type": "string"} if _is_text(kind) else {}
    if issubclass(origin, Mapping):
        return {"type": "object"}
    if issubclass(origin, tuple) and Ellipsis not in arguments:
        return {"type": "array"}
    if issubclass(origin, Sequence | set | frozenset):
        return {"type": "array", "items": schema_of(arguments[0])}
    return {}


def _object(kind: type[Any]) -> Schema:
    names = _Names(vars(sys.modules[kind.__module__]))
    hints = get_type_hints(kind, localns=names)
    fields = [field for field in dataclasses.fields(kind) if "hidden" not in field.metadata]
    return {
        "type": "object",
        "properties": {field.name: schema_of(hints[field.name]) for field in fields},
        "required": [field.name for field in fields if "optional" not in field.metadata],
    }


def _is_text(kind: Any) -> bool:
    """Return whether `as_data` writes values of a class as text, such as ids."""
    return isinstance(kind, type) and kind.__module__ in ("uuid", "ipaddress", "pathlib")
