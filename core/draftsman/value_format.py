"""Payloads, results and usage as text. Pure.

The text is that of people and agents: a front end makes control characters visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from draftsman.formats.amounts import format_money

MAX_DEPTH: Final = 4
"""Nesting levels that are rendered as lines; deeper values are rendered as JSON."""
MAX_FIELDS: Final = 60
"""Maximum number of lines per value."""
MAX_VALUE_LENGTH: Final = 2000
"""Maximum number of characters of a string."""
MAX_JOINED_LENGTH: Final = 100
"""Maximum number of characters of a list on one line."""
MAX_NAME_WIDTH: Final = 20
"""Maximum width of a name that is aligned with others."""
SHOWN_HOSTS: Final = 5
"""Maximum number of hosts of a network."""
USED: Final = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cost_usd": "cost",
    "models": "models",
}
"""Labels of usage figures, in the order of output."""


def fields(value: Mapping[str, Any], more: str) -> list[str]:
    """Render the fields as lines, with nested values indented below their name.

    `more` is the command that shows the rest of a value with more than 60 lines.
    """
    lines = list(_mapping(value, 0))
    if len(lines) <= MAX_FIELDS:
        return lines
    return [*lines[:MAX_FIELDS], f"… {len(lines) - MAX_FIELDS:,} more lines: {more}"]


def _mapping(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    names = [" ".join(str(name).split()) for name in value]
    width = max((len(name) for name in names if len(name) <= MAX_NAME_WIDTH), default=0)
    for name, item in zip(names, value.values(), strict=True):
        short = _short(item, depth)
        if short is not None:
            yield f"{name:<{width}}  {short}"
        else:
            yield name
            yield from (f"  {line}" for line in _long(item, depth + 1))


def _long(value: Any, depth: int) -> Iterator[str]:
    """Yield the lines of a value that does not fit beside its name."""
    if isinstance(value, str):
        yield from _cut(value).splitlines()
    elif isinstance(value, Mapping):
        yield from _mapping(value, depth)
    else:
        for item in value:
            short = _short(item, depth)
            first, *further = [short] if short is not None else list(_long(item, depth + 1))
            yield f"- {first}"
            yield from (f"  {line}" for line in further)


def _short(value: Any, depth: int) -> str | None:
    """Return a value that fits on one line, otherwise None."""
    if isinstance(value, str):
        text = _cut(value)
        return None if len(text.splitlines()) > 1 else text or '""'
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, Mapping | list | tuple):
        return "none" if value is None else str(value)
    if not value:
        return "none"
    if depth >= MAX_DEPTH:
        return _cut(json.dumps(value, ensure_ascii=False, default=str))
    if isinstance(value, Mapping) or any(
        isinstance(item, Mapping | list | tuple) for item in value
    ):
        return None
    items = [_short(item, depth) for item in value]
    joined = ", ".join(item for item in items if item is not None)
    return None if None in items or len(joined) > MAX_JOINED_LENGTH else joined


def _cut(text: str) -> str:
    if len(text) <= MAX_VALUE_LENGTH:
        return text
    return f"{text[:MAX_VALUE_LENGTH]}… {len(text) - MAX_VALUE_LENGTH:,} more characters"


def usage_lines(usage: Mapping[str, Any]) -> str:
    """Render the usage of a run as a line: tokens, cost, models, other figures."""
    known = [name for name in USED if name in usage]
    names = [*known, *sorted(usage.keys() - set(known))]
    return " · ".join(f"{USED.get(name, name)} {_amount(name, usage[name])}" for name in names)


def sum_usage(usages: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Add up the numbers and merge the lists of several usages."""
    sums: dict[str, Any] = {}
    for usage in usages:
        for name, value in (usage or {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[name] = sums.get(name, 0) + value
            elif isinstance(value, list):
                sums[name] = sorted({*sums.get(name, ()), *map(str, value)})
    return sums


def _amount(name: str, value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if name == "cost_usd" and isinstance(value, int | float):
        return format_money(value)
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def network_text(network: object, yes: str = "yes", no: str = "no") -> str:
    """Return the network of a program: `yes`, `no` or its first hosts."""
    if not isinstance(network, list | tuple):
        return yes if network else no
    remainder = f" and {len(network) - SHOWN_HOSTS} more" if len(network) > SHOWN_HOSTS else ""
    return ", ".join(str(host) for host in network[:SHOWN_HOSTS]) + remainder
