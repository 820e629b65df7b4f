"""Which columns a table shows, and how wide: what fits, and what is to the left and the right.

Widths follow what stands in the rows in view: no cell is cut beside room that another column does
not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from draftsman_tui.common.column_widths import share
from draftsman_tui.dashboard.resource import Column

LEAST: Final = 10
"""Cells of the column that takes what is left."""
READABLE: Final = 24
"""The same, once somebody went to the right to read it."""
WIDE: Final = 100
"""Cells of a line from which on columns stand further apart."""
LEAD: Final = 2
"""Cells before the first column, for the cursor and the mark."""


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column in view: the how-manieth of its resource, where it begins, how wide it is."""

    nth: int
    column: Column[Any]
    x: int
    size: int


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The columns in view, and whether there are more on either side."""

    placed: Sequence[PlacedColumn]
    left: bool
    right: bool


def layout(
    columns: Sequence[Column[Any]],
    width: int,
    chosen: Sequence[str] = (),
    shift: int = 0,
    content: Sequence[int] = (),
) -> ColumnLayout:
    """Lay out columns on a line of so many cells.

    `content` are the cells of the longest text of each column; none: it is not known. `chosen` are
    heads in the order wanted; none: those that the width has room for. `shift` are columns that
    were passed on the way to the right; the first one stays, which names the row.
    """
    everything = list(enumerate(columns))
    heads = {column.head: (nth, column) for nth, column in everything}
    wanted = [heads[head] for head in chosen if head in heads] or everything
    if not chosen and not shift:
        shown = [one for one in everything if one[1].from_width <= width]
        return ColumnLayout(_placed(shown, width, content), False, len(shown) < len(everything))
    rest = wanted[1 + min(shift, max_shift(columns, width, chosen)) :]
    fitting = _fitting([wanted[0], *rest], width)
    return ColumnLayout(_placed(fitting, width, content), shift > 0, len(fitting) <= len(rest))


def max_shift(columns: Sequence[Column[Any]], width: int, chosen: Sequence[str] = ()) -> int:
    """Return how far to the right one may go: until the last column is in view."""
    heads = {column.head: (nth, column) for nth, column in enumerate(columns)}
    wanted = [heads[head] for head in chosen if head in heads] or list(heads.values())
    for shift in range(len(wanted) - 1):
        tail = [wanted[0], *wanted[1 + shift :]]
        if len(_fitting(tail, width)) == len(tail):
            return shift
    return max(0, len(wanted) - 2)


def gap(width: int) -> int:
    """Return the cells between two columns."""
    return 1 if width < WIDE else 2


def fit(text: str, size: int, right: bool = False) -> str:
    """Return a text that is exactly so many cells wide, whatever it is written in."""
    long = cell_len(text)
    if long > size:
        return set_cell_size(text, size - 1) + "…" if size > 1 else set_cell_size(text, size)
    return " " * (size - long) + text if right else text + " " * (size - long)


def _fitting(columns: Sequence[tuple[int, Column[Any]]], width: int) -> list[Any]:
    """Return as many of the columns as there is room for, two at least."""
    room = width - LEAD - 1
    shown: list[Any] = []
    for nth, column in columns:
        room -= (column.width or READABLE) + gap(width)
        if room < 0 and len(shown) > 1:
            break
        shown.append((nth, column))
    return shown


def _placed(
    columns: Sequence[tuple[int, Column[Any]]], width: int, content: Sequence[int]
) -> list[PlacedColumn]:
    """Share the line: first what each column asks for, then what is cut, then the rest to one.

    The rest goes to the column that has no width of its own, or to the last.
    """
    between = gap(width)
    room = width - LEAD - 1 - between * len(columns)
    needs = [content[nth] if content else column.width for nth, column in columns]
    heads = [len(column.head) for _, column in columns]
    given = [column.width for _, column in columns]
    taker = given.index(0) if 0 in given else len(given) - 1
    least = [
        min(size, max(head, need)) if column.most and content else size
        for (_, column), size, head, need in zip(columns, given, heads, needs, strict=True)
    ]
    least[taker] = LEAST
    wanted = [
        max(size, min(need, column.most))
        for (_, column), size, need in zip(columns, least, needs, strict=True)
    ]
    wanted[taker] = max(LEAST, needs[taker])
    sizes = share(share(least, wanted, room), list(map(max, least, needs)), room)
    sizes[taker] += max(0, room - sum(sizes))
    found, x = [], LEAD
    for (nth, column), size in zip(columns, sizes, strict=True):
        found.append(PlacedColumn(nth, column, x, size))
        x += size + between
    return found
