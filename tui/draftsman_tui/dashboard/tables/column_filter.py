"""Terms of a filter about a column: `cost>1`, `waits>1h`, `title:refund`.

Does not import the tables: `HEADS` lists their columns, which a test compares.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from draftsman.durations import parse_duration
from draftsman.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HEADS: Final = frozenset(
    {
        *("about", "added", "allows", "answered", "answers", "at", "attempts", "beat", "board"),
        *("branch", "budget", "busy", "calls", "changes", "choices", "cost", "day", "default"),
        *("description", "detail", "error", "event", "exit", "expires", "health", "held", "host"),
        *("id", "jobs", "labels", "last", "leader", "left", "name", "next", "oldest"),
        *(
            "parameters",
            "pid",
            "pings",
            "question",
            "queue",
            "queued",
            "queues",
            "quiet",
            "reserved",
        ),
        *("rule", "run", "running", "runs", "schedule", "seen", "share", "started", "submits"),
        *("template", "title", "to", "took", "type", "up", "url", "used", "uses", "version", "via"),
        *("waits", "worker", "zone"),
    }
)
"""Columns that filters know by the word in their head; other fields have a value of their own."""
COMPARISON: Final = re.compile(r"([A-Za-z]+)([<>])(\$?\d\S*)")
_NUMBER: Final = re.compile(r"\$?(\d+(?:\.\d+)?)")


class FilteredColumn(Protocol):
    """A column of a table: its head, and the value by which its rows are sorted."""

    @property
    def head(self) -> str: ...

    @property
    def order(self) -> Callable[[Any], Any] | None: ...


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    """A condition on a column; `sign` is `:`, `<` or `>`."""

    head: str
    sign: str
    value: str

    def __str__(self) -> str:
        return shlex.quote(f"{self.head}{self.sign}{self.value}")

    def check(self, columns: Sequence[FilteredColumn]) -> None:
        """Raise UsageError if a table has no such column, or cannot compare it."""
        column = _column(columns, self.head)
        if self.sign != ":" and column.order is None:
            raise UsageError(f"{self.head} cannot be compared; use {self.head}:{self.value}")
        if self.sign != ":":
            _limit(self.value)

    def matches(
        self, row: Any, columns: Sequence[FilteredColumn], texts: Sequence[str], now: datetime
    ) -> bool:
        """Return whether the row has this value in the column."""
        column = _column(columns, self.head)
        if self.sign == ":":
            return self.value.casefold() in texts[columns.index(column)].casefold()
        value = column.order(row) if column.order is not None else None
        number, limit = _comparable(value, now), _limit(self.value)
        if number is None:
            return False
        return number < limit if self.sign == "<" else number > limit


def _column(columns: Sequence[FilteredColumn], head: str) -> FilteredColumn:
    for column in columns:
        if column.head.casefold() == head:
            return column
    known = ", ".join(column.head.lower() for column in columns if " " not in column.head)
    raise UsageError(f"no column {head!r} in this table; columns: {known}")


def _limit(text: str) -> float:
    """Return a number, or a duration in seconds; a time is compared with seconds."""
    number = _NUMBER.fullmatch(text)
    return float(number[1]) if number else parse_duration(text)


def _comparable(value: Any, now: datetime) -> float | None:
    """Return a value as a number, a time as its distance in seconds; None: nothing to compare."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return abs((now - value).total_seconds())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
