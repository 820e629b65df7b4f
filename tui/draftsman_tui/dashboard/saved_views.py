"""Saved views: a table, how it is narrowed, sorted and laid out, under a name. Pure."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman_tui.dashboard import filter as filters
from draftsman_tui.dashboard.views import VIEWS

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class View:
    """What `:save` keeps. `columns` are heads in the order wanted; none: those that fit."""

    table: str
    filter: str = ""
    sort: str | None = None
    down: bool = False
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.table, self.filter]
        if self.sort:
            parts.append(f"by {self.sort.lower()} {'↓' if self.down else '↑'}")
        if self.columns:
            parts.append(f"with {', '.join(head.lower() for head in self.columns)}")
        return "  ".join(filter(None, parts))


BUILTIN_VIEWS: Final = {
    "for-me": View("inbox", "for:me"),
    "mine": View("jobs", "by:me"),
    "failed-today": View("jobs", "status:failed,dead_letter age<1d"),
    "running": View("jobs", "status:running"),
}
"""Views that are there; one that is saved under the same name takes its place."""


def validate_name(name: str, commands: frozenset[str]) -> str:
    """Return a name that a view may have; raises UsageError. `commands` are taken."""
    name = name.strip().casefold()
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"a view cannot be called {name!r}; give 1 to 40 of a-z, 0-9, - and _, not - or _ first"
        )
    if name in commands:
        raise UsageError(f":{name} is a command; give the view another name")
    return name


def read(data: Any) -> View:
    """Read a view as it was kept; raises UsageError, which says what is wrong."""
    if not isinstance(data, dict):
        raise UsageError("it is no object")
    table, sort, columns = data.get("table"), data.get("sort"), data.get("columns") or []
    if not isinstance(table, str) or table not in VIEWS:
        raise UsageError(f"there is no table {table!r}")
    if not isinstance(columns, list) or not isinstance(data.get("filter") or "", str):
        raise UsageError("its filter is no text, or its columns are no list")
    columns = [str(one) for one in columns]
    heads = {column.head for column in VIEWS[table].columns}
    if strange := [one for one in (sort, *columns) if one is not None and one not in heads]:
        raise UsageError(f"{table} has no column {strange[0]!r}")
    text = data.get("filter") or ""
    VIEWS[table].resolve(filters.parse(text))
    return View(table, text, sort, bool(data.get("down")), tuple(columns))


def written(view: View) -> dict[str, Any]:
    """Return what is kept of it."""
    return {key: value for key, value in asdict(view).items() if value}
