"""Charts of the jobs that ended in a period: how many, how long they waited and ran. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.entities.cells import Cell
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.formats.sparklines import column_chart
from draftsman.jobs.details.throughput import BARS, Period, Throughput, ThroughputGroup
from draftsman_tui.dashboard.widgets.column_layout import fit

Row = tuple[Cell, ...]
GAP: Final = 2
"""Columns between two charts."""
WIDEST: Final = 3
"""Columns of a bar, at most."""
EACH: Final = {Period.HOUR: "2.5 min", Period.DAY: "1 h", Period.WEEK: "7 h"}
"""The time of a bar of a period."""
AGO: Final = {Period.HOUR: "1 h ago", Period.DAY: "24 h ago", Period.WEEK: "7 d ago"}
"""The beginning of the axis of a period."""


def charts(row: Throughput, width: int, rows: int) -> list[Row]:
    """Return the charts of a row beside each other, as rows of cells, with a title and axes.

    The vertical axis begins at 0 and ends at the value that the head of a chart names.
    """
    room = max(BARS, (width - 2 * GAP) // 3)
    bar = max(1, min(WIDEST, room // BARS))
    whole = BARS * bar
    series: Sequence[tuple[str, Sequence[float | None], str]] = (
        ("ended", row.bars, "key"),
        ("waited", row.wait_bars, "warns"),
        ("ran", row.run_bars, "good"),
    )
    heads = [_head(name, values) for name, values, _ in series]
    drawn = [column_chart(values, rows, bar_width=bar) for _, values, _ in series]
    title = one_line(row.value) or "all jobs"
    kind = "" if row.by is ThroughputGroup.ALL else f"{row.by} "
    lines: list[Row] = [
        (
            Cell(f"{kind}{title}", "head"),
            Cell(f"  last {row.period}, a bar is {EACH[row.period]}; times are medians", "dim"),
        ),
        _beside([Cell(text) for text in heads], room),
    ]
    for line in range(rows):
        cells = [Cell(chart[line], role) for chart, (*_, role) in zip(drawn, series, strict=True)]
        lines.append(_beside(cells, room))
    axis = f"{AGO[row.period]}{'now':>{whole - len(AGO[row.period])}}"
    lines.append(_beside([Cell("▔" * whole, "dim")] * 3, room))
    lines.append(_beside([Cell(axis, "dim")] * 3, room))
    return lines


def _head(name: str, values: Sequence[float | None]) -> str:
    top = max((value for value in values if value is not None), default=0)
    if not top:
        return f"{name}: none"
    return f"{name}: up to {top if name == 'ended' else times.span(top)}"


def _beside(cells: Sequence[Cell], room: int) -> Row:
    """Return cells in columns of that width."""
    placed: list[Cell] = []
    for cell in cells:
        text = fit(cell.text, room)
        placed += [Cell(text, cell.role), Cell(" " * GAP)]
    return tuple(placed[:-1])
