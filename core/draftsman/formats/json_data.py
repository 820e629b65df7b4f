"""Values as JSON data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

OPTIONAL: Final = {"optional": True}
"""Metadata of a field that data does not have while it is None."""
HIDDEN: Final = {"hidden": True}
"""Metadata of a field that data never has."""


def as_data(value: object) -> Any:
    """Convert a value to JSON data: dataclasses as objects, times as ISO 8601, ids as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field for field in dataclasses.fields(value) if "hidden" not in field.metadata)
        items = ((field, getattr(value, field.name)) for field in fields)
        return {
            field.name: as_data(item)
            for field, item in items
            if item is not None or "optional" not in field.metadata
        }
    if isinstance(value, Mapping):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(as_data(item) for item in value)
    if isinstance(value, list | tuple):
        return [as_data(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
