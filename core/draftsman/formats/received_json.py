"""JSON objects that another service sends: any value may be in any field."""

from __future__ import annotations

import json
import re
from typing import Any, Final

MAX_DEPTH: Final = 100
"""Levels of an object; what reads it may recur."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
REPLACEMENT: Final = "\ufffd"


def read_object(raw: str | bytes, *, strict: bool = False) -> dict[str, Any] | None:
    """Return the JSON object of a text; None for any other text, with `strict` also for NaN.

    Half a character, which neither UTF-8 nor the database can have, is replaced.
    """
    try:
        value = json.loads(raw, parse_constant=_reject_constant if strict else None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_repaired(value) else None


def _is_repaired(value: dict[str, Any]) -> bool:
    """Replace surrogates on all levels; return whether there are not too many levels."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [item for container in level for item in _repair(container)]
        if not level:
            return True
    return False


def _repair(container: Any) -> list[Any]:
    """Replace the surrogates of an object or a list in place; return the containers in it."""
    if isinstance(container, dict):
        for name in [name for name in container if not name.isascii()]:
            container[replace_surrogates(name)] = container.pop(name)
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    for key, item in list(pairs):
        if isinstance(item, str) and not item.isascii():
            container[key] = replace_surrogates(item)
    items = container.values() if isinstance(container, dict) else container
    return [item for item in items if isinstance(item, dict | list)]


def replace_surrogates(text: str) -> str:
    """Return the text with a replacement for each half of a character."""
    return _SURROGATE.sub(REPLACEMENT, text)


def _reject_constant(name: str) -> Any:
    raise ValueError(name)
