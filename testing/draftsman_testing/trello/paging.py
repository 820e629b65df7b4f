"""Which of many are returned: `limit`, `page`, `since` and `before`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from draftsman_testing.trello.api_errors import invalid_value
from draftsman_testing.trello.world import is_id, iso

MOST: Final = 1000
"""Entries in a response, and `page` times `limit` stays below it."""


def newest(
    entries: Iterable[Any], args: Mapping[str, Any], date: Callable[[Any], str], default: int
) -> list[Any]:
    """Return the newest entries in the requested window, newest first.

    `since` and `before` are dates or ids; Trello derives the date from an id, which has whole
    seconds. Neither end belongs to the window: that is from memory, and the stricter reading.
    """
    limit = number(args, "limit", default, MOST)
    page = number(args, "page", 0, MOST)
    if page and page * limit >= MOST:
        raise invalid_value("page")
    start = edge(args, "since")
    end = edge(args, "before")
    window = [
        entry
        for entry in entries
        if (start is None or date(entry) > start) and (end is None or date(entry) < end)
    ]
    window.sort(key=date, reverse=True)
    return window[page * limit : (page + 1) * limit]


def number(args: Mapping[str, Any], name: str, default: int, maximum: int) -> int:
    """Return a number of the arguments."""
    given = args.get(name)
    if given in (None, ""):
        return default
    try:
        value = int(str(given))
    except ValueError:
        raise invalid_value(name) from None
    if not 0 <= value <= maximum:
        raise invalid_value(name)
    return value


def edge(args: Mapping[str, Any], name: str) -> str | None:
    """Return the date of an argument, or of its id; None for `null`."""
    given = str(args.get(name) or "")
    if given in ("", "null"):
        return None
    if is_id(given):
        return born(given)
    try:
        when = datetime.fromisoformat(given)
    except ValueError:
        raise invalid_value(name) from None
    return iso((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


def born(id: str) -> str:
    """Return the second in which an id was made."""
    return iso(int(id[:8], 16))
