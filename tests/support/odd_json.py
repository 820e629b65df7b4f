"""Documents with an odd value in any field, as no service should send them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

Json = Any


def _nested(depth: int) -> Json:
    value: Json = []
    for _ in range(depth):
        value = [value]
    return value


ODD: Final[tuple[Json, ...]] = (
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\0",
    "\ud800",
    "U\udfff1",
    "\u202e\u2066",
    "x" * 4000,
    [],
    [None],
    ["\ud800"],
    [[{}]],
    {},
    {"\ud800": "\udc00"},
    {"type": ["section"], "id": {}, "ts": 1},
    _nested(300),
)
"""What a field may have, apart from what it should have."""
LABELED: Final = [(odd, f"{odd!r:.40}") for odd in ODD]


def oddities(documents: dict[str, Json], few: int | None) -> Iterator[tuple[str, Json]]:
    """Yield each document with one field changed, and a name of the change.

    A field has `few` values in turn, so that all fields together have each many times; None: all.
    """
    turn = 0
    for name, document in documents.items():
        for path in _paths(document):
            count = len(ODD) if few is None else few
            for index in range(turn, turn + count):
                odd, text = LABELED[index % len(ODD)]
                yield f"{name}: {'.'.join(map(str, path))} = {text}", _with(document, path, odd)
            turn += count


def _paths(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _with(document: Json, path: tuple[str | int, ...], value: Json) -> Json:
    """Return a copy with a changed field, which shares all other fields."""
    if not path:
        return value
    changed = copy.copy(document)
    changed[path[0]] = _with(document[path[0]], path[1:], value)
    return changed
