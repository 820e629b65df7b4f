"""Saved views: a table with its filter, order and columns, under a name."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman_tui.dashboard.tables import filter as filters
from draftsman_tui.dashboard.views import VIEWS

NOT_GROUPED: Final = "none"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True)
class View:
    """A saved view. `columns` are column heads in display order; empty means those that fit."""

    table: str
    filter: str = ""
    sort: str | None = None
    down: bool = False
    columns: tuple[str, ...] = ()
    group: str | None = None
    """How the rows are grouped; None: by default, "": not at all."""

    def __str__(self) -> str:
        words = [self.table, self.filter]
        if self.sort:
            words.append(f"by {self.sort.lower()} {'↓' if self.down else '↑'}")
        words.append(group_text(self.table, self.group))
        if self.columns:
            words.append(f"with {', '.join(head.lower() for head in self.columns)}")
        return "  ".join(filter(None, words))


def group_text(table: str, group: str | None) -> str:
    """Return how the rows of a table are grouped; "" if that is its default."""
    if group:
        return f"grouped by {group}"
    return "not grouped" if group == "" and VIEWS[table].default_group else ""


BUILTIN_VIEWS: Final = {
    "attention": View("jobs", group="attention"),
    "for-me": View("inbox", "for:me"),
    "mine": View("jobs", "by:me"),
    "failed-today": View("jobs", "status:failed,dead_letter age<1d"),
    "running": View("jobs", "status:running"),
}
"""Built-in views; a saved view of the same name overrides one of them."""


def validate_name(name: str, commands: frozenset[str]) -> str:
    """Return the normalized name; raises UsageError if it is invalid or a command."""
    name = name.strip().casefold()
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"invalid view name {name!r}; use 1 to 40 of a-z, 0-9, - and _, starting a-z or 0-9"
        )
    if name in commands:
        raise UsageError(f":{name} is a command; choose another name")
    return name


def read(data: Any) -> View:
    """Parse a view from JSON data; raises UsageError."""
    if not isinstance(data, dict):
        raise UsageError("expected an object")
    table = data.get("table")
    sort = data.get("sort")
    columns = data.get("columns") or []
    if not isinstance(table, str) or table not in VIEWS:
        raise UsageError(f"unknown table {table!r}")
    if not isinstance(columns, list) or not isinstance(data.get("filter") or "", str):
        raise UsageError("filter must be a string, and columns a list")
    columns = [str(column) for column in columns]
    heads = {column.head for column in VIEWS[table].columns}
    if unknown := [
        column for column in (sort, *columns) if column is not None and column not in heads
    ]:
        raise UsageError(f"unknown column {unknown[0]!r} of {table}")
    group = data.get("group")
    group = None if group is None else "" if group == NOT_GROUPED else str(group)
    if group and group not in VIEWS[table].groups:
        raise UsageError(f"cannot group {table} by {group!r}")
    text = data.get("filter") or ""
    VIEWS[table].resolve(filters.parse(text))
    return View(
        table,
        filter=text,
        sort=sort,
        down=bool(data.get("down")),
        columns=tuple(columns),
        group=group,
    )


def to_json(view: View) -> dict[str, Any]:
    """Return the fields that differ from an empty view."""
    data = {key: value for key, value in asdict(view).items() if value}
    return data | ({"group": NOT_GROUPED} if view.group == "" else {})
