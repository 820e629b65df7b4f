"""Terms of a filter about a column, `cost>1`, `waits>1h`, `title:refund`; and words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Protocol

from draftsman.durations import parse_age
from draftsman.errors import UsageError

COMPARISON: Final = re.compile(r"([A-Za-z]+)([<>])(\$?\d\S*)")
_TERM: Final = re.compile(r"([A-Za-z0-9]+)([:<>])(.+)", re.DOTALL)
_EMPTY: Final = re.compile(r"([A-Za-z0-9]+)([:<>])")
_TOKEN: Final = re.compile(r'(?:"[^"]*"?|[^\s"])+')
_NO_TERM: Final = re.compile(r"\d+:|[A-Za-z]\w*://")
"""How words begin that have a colon: `12:30`, `https://a.example`."""
_NUMBER: Final = re.compile(r"\$?(\d+(?:\.\d+)?)")


class Measure(StrEnum):
    """What a column is compared with."""

    NUMBER = "a number, such as 3"
    TIME = "a duration or a time, such as 1h or 2026-11-30"

    def takes(self, text: str) -> bool:
        """Return whether a text is a value of this measure."""
        try:
            _limit(text, datetime.now(UTC))
        except UsageError:
            return False
        return self is Measure.TIME or _NUMBER.fullmatch(text) is not None


class FilteredColumn(Protocol):
    """A column of a table: its head, the value by which its rows are sorted, and its measure."""

    @property
    def head(self) -> str: ...

    @property
    def order(self) -> Callable[[Any], Any] | None: ...

    @property
    def measure(self) -> Measure | None: ...


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    """A condition on a column; `sign` is `:`, `<` or `>`."""

    head: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.head}{self.sign}{shlex.quote(self.value)}"

    def check(self, columns: Sequence[FilteredColumn]) -> None:
        """Raise UsageError if a table has no such column, or cannot compare it."""
        column = _column(columns, self.head)
        if self.sign == ":":
            return
        if column.measure is None:
            raise UsageError(f"{self.head} cannot be compared; use {self.head}:{self.value}")
        if not column.measure.takes(self.value):
            problem = needed_value(self.head, self.sign, column.measure)
            raise UsageError(f"{problem}, not {self.value[:60]!r}")

    def matches(
        self, row: Any, columns: Sequence[FilteredColumn], texts: Sequence[str], now: datetime
    ) -> bool:
        """Return whether the row has this value in the column."""
        column = _column(columns, self.head)
        if self.sign == ":":
            return self.value.casefold() in texts[columns.index(column)].casefold()
        value = column.order(row) if column.order is not None else None
        number = _comparable(value, now)
        limit = _limit(self.value, now)
        if number is None:
            return False
        return number < limit if self.sign == "<" else number > limit


def _column(columns: Sequence[FilteredColumn], head: str) -> FilteredColumn:
    for column in columns:
        if column.head.casefold() == head:
            return column
    heads = ", ".join(column.head.lower() for column in columns if " " not in column.head)
    raise UsageError(f"no column {head!r} in this table; columns: {heads}")


def needed_value(head: str, sign: str, measure: Measure | None) -> str:
    """Return what a condition needs: `cost> needs a number, such as 3`."""
    value = f"a value, as in {head}:VALUE" if sign == ":" or measure is None else measure
    return f"{head}{sign} needs {value}"


def _limit(text: str, now: datetime) -> float:
    """Return a number, or a duration or the distance of a time, in seconds."""
    if number := _NUMBER.fullmatch(text):
        return float(number[1])
    bound = parse_age(text, now)
    return abs((now - bound).total_seconds()) if isinstance(bound, datetime) else bound


def _comparable(value: Any, now: datetime) -> float | None:
    """Return a value as a number, a time as its distance in seconds; None: nothing to compare."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return abs((now - value).total_seconds())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _measures(head: str, columns: Sequence[FilteredColumn]) -> list[Measure | None]:
    """Return the measure of the column with a head; none if there is no such column."""
    return [column.measure for column in columns if column.head.casefold() == head.casefold()]


def parse_term(text: str) -> ColumnTerm:
    """Parse a term; raises UsageError."""
    match = _TERM.fullmatch(text)
    if match is None:
        raise UsageError(f"{text[:80]!r} is no condition on a column, such as cost>1 or title:pay")
    return ColumnTerm(match[1].casefold(), match[2], match[3])


def parse_search(
    text: str, columns: Sequence[FilteredColumn]
) -> tuple[list[str], list[ColumnTerm]]:
    """Return the words of a search, in lower case, and its conditions on these columns.

    Quoted text is a word. Raises UsageError, for a column that is unknown, too.
    """
    words = []
    terms = []
    for token in _TOKEN.findall(text):
        unquoted = token.replace('"', "")
        if not token.startswith('"') and _TERM.fullmatch(unquoted) and not _NO_TERM.match(token):
            terms.append(parse_term(unquoted))
            terms[-1].check(columns)
        elif (empty := _EMPTY.fullmatch(unquoted)) and (measures := _measures(empty[1], columns)):
            raise UsageError(needed_value(empty[1].casefold(), empty[2], measures[0]))
        elif unquoted:
            words.append(unquoted.casefold())
    return words, terms
