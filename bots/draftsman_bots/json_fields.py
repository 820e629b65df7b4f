"""Readers of fields in JSON from outside. Pure.

Any field may be missing, null or of another type; a reader returns an empty value instead.
"""

from __future__ import annotations

from typing import Any


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def nested(data: object, *names: str) -> dict[str, Any]:
    """Return the object below these names, else an empty object."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def string(data: object, name: str) -> str:
    """Return a field if it is a string, else ""."""
    value = data.get(name) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def objects(data: object, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list, else an empty list."""
    value = mapping(data).get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
