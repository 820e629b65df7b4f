"""Column layout: which columns are visible, and their widths.

Widths adapt to the visible rows, so that no cell is truncated while another column has spare
space.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len

from draftsman.entities.entity import Column
from draftsman.formats.truncation import truncate
from draftsman_tui.terminal.column_widths import share

MIN_FLEXIBLE: Final = 10
"""Minimum width of the flexible column."""
SCROLLED_FLEXIBLE: Final = 24
"""Its minimum width after horizontal scrolling."""
WIDE_SCREEN: Final = 100
"""Width from which the gap between columns is larger."""
LEAD: Final = 2
"""Cells for the cursor and the mark before the first column."""


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A visible column: its index in the resource, position and width."""

    nth: int
    column: Column[Any]
    x: int
    size: int


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The visible columns, and whether there are more on either side."""

    placed: Sequence[PlacedColumn]
    left: bool
    right: bool
    second: Sequence[PlacedColumn] = ()
    """The columns of the second line of each row."""


def layout(
    columns: Sequence[Column[Any]],
    width: int,
    chosen: Sequence[str] = (),
    shift: int = 0,
    content: Sequence[int] = (),
    *,
    empty: Collection[int] = (),
    sort: str | None = None,
    two_lines: bool = False,
) -> ColumnLayout:
    """Lay out columns for a width in cells; with `two_lines`, some are below others.

    `content` has the longest text width of each column, if known, and `empty` the columns that are
    hidden because no row has a text for them. `chosen` has column heads in
    display order; empty means those that fit, of those on request only `sort`. `shift` is the
    number of columns scrolled off to the left; the first column stays.
    """
    all_columns = list(enumerate(columns))
    if two_lines:
        return _stacked(all_columns, width, content)
    heads = {column.head: (nth, column) for nth, column in all_columns}
    selected = [heads[head] for head in chosen if head in heads] or all_columns
    if not chosen and not shift:
        useful = [
            (nth, column)
            for nth, column in all_columns
            if nth not in empty and (not column.on_request or column.head == sort)
        ]
        fitting = [(nth, column) for nth, column in useful if column.from_width <= width]
        return ColumnLayout(_placed(fitting, width, content), False, len(fitting) < len(useful))
    scrolled = selected[1 + min(shift, max_shift(columns, width, chosen)) :]
    visible = _fitting([selected[0], *scrolled], width)
    return ColumnLayout(_placed(visible, width, content), shift > 0, len(visible) <= len(scrolled))


def _stacked(
    columns: Sequence[tuple[int, Column[Any]]], width: int, content: Sequence[int]
) -> ColumnLayout:
    """Lay out two lines: each column of the second begins below its column of the first."""
    below = {column.below: (nth, column) for nth, column in columns if column.below}
    first = [(nth, col) for nth, col in columns if not col.below and col.from_width <= width]
    wanted = list(content)
    for nth, column in first if content else ():
        if column.head in below and column.width:
            wanted[nth] = max(wanted[nth], wanted[below[column.head][0]])
    placed = _placed(first, width, wanted)
    starts = [
        (column.x, *below[column.column.head]) for column in placed if column.column.head in below
    ]
    ends = [x - gap(width) for x, _, _ in starts[1:]] + [width - 1]
    second = [
        PlacedColumn(nth, column, x, end - x)
        for (x, nth, column), end in zip(starts, ends, strict=True)
    ]
    return ColumnLayout(placed, False, len(placed) + len(second) < len(columns), second)


def max_shift(columns: Sequence[Column[Any]], width: int, chosen: Sequence[str] = ()) -> int:
    """Return the maximum shift, at which the last column is visible."""
    heads = {column.head: (nth, column) for nth, column in enumerate(columns)}
    selected = [heads[head] for head in chosen if head in heads] or list(heads.values())
    for shift in range(len(selected) - 1):
        tail = [selected[0], *selected[1 + shift :]]
        if len(_fitting(tail, width)) == len(tail):
            return shift
    return max(0, len(selected) - 2)


def gap(width: int) -> int:
    """Return the cells between columns."""
    return 1 if width < WIDE_SCREEN else 2


def fit(text: str, size: int, right: bool = False) -> str:
    """Pad or truncate a text to a width in cells."""
    long = cell_len(text)
    if long > size:
        text = truncate(text, size, cell_len)
        long = cell_len(text)
    return " " * (size - long) + text if right else text + " " * (size - long)


def _fitting(columns: Sequence[tuple[int, Column[Any]]], width: int) -> list[Any]:
    """Return the columns that fit, at least two."""
    room = width - LEAD - 1
    fitting: list[Any] = []
    for nth, column in columns:
        room -= (column.width or SCROLLED_FLEXIBLE) + gap(width)
        if room < 0 and len(fitting) > 1:
            break
        fitting.append((nth, column))
    return fitting


def _placed(
    columns: Sequence[tuple[int, Column[Any]]], width: int, content: Sequence[int]
) -> list[PlacedColumn]:
    """Assign widths: minimum widths, then truncated columns and heads.

    Columns without a fixed width, or else the last, are as wide as their texts: numbers stay beside
    the names that they belong to. Until the text is known, the first of them takes the rest.
    """
    between = gap(width)
    room = width - LEAD - 1 - between * len(columns)
    heads = [cell_len(column.heading) for _, column in columns]
    needs = [content[nth] if content else column.width for nth, column in columns]
    widths = [column.width for _, column in columns]
    flexible = widths.index(0) if 0 in widths else len(widths) - 1
    minimums = [
        min(size, max(head, need)) if column.most and content else size
        for (_, column), size, head, need in zip(columns, widths, heads, needs, strict=True)
    ]
    minimums[flexible] = MIN_FLEXIBLE
    texts = list(map(max, minimums, heads, needs))
    desired = [
        max(size, min(need, column.most)) if column.width else text
        for (_, column), size, need, text in zip(columns, minimums, needs, texts, strict=True)
    ]
    desired[flexible] = texts[flexible]
    sizes = share(share(minimums, desired, room), texts, room)
    if not content:
        sizes[flexible] += max(0, room - sum(sizes))
    placed = []
    x = LEAD
    for (nth, column), size in zip(columns, sizes, strict=True):
        placed.append(PlacedColumn(nth, column, x, size))
        x += size + between
    return placed
