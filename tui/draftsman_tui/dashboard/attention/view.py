"""How soon questions are seen and answered, by person, channel and kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.attention.figures import AttentionFigures, FigureGroup
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.attention import name_text, ratio_text, time_text
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime

MONTH: Final = 30 * 86_400.0
"""Seconds of the figures without `age<`."""


@dataclass(frozen=True, slots=True)
class FigureRow:
    """The figures of a person, channel or kind of question, read at a time."""

    figures: AttentionFigures
    at: datetime


@table_view
class FiguresResource(Resource[FigureRow]):
    """Figures of people's time."""

    name = "figures"
    help = "How soon people see and answer questions; others: kind:channel age<7d."
    statuses = tuple(map(str, FigureGroup))
    fields = ("status", "age")
    empty = "No questions in this time. For others: figures kind:channel age<90d"
    columns = (
        Column[FigureRow]("BY", 8, order=lambda row: row.figures.by),
        Column[FigureRow]("NAME", 0, order=lambda row: row.figures.value),
        Column[FigureRow](
            "ANSWERS", 8, right=True, order=lambda row: row.figures.answers, largest_first=True
        ),
        Column[FigureRow]("SEEN", 8, right=True, order=lambda row: _order(row.figures.seen_p50)),
        Column[FigureRow](
            "ANSWERED", 9, right=True, order=lambda row: _order(row.figures.answer_p50)
        ),
        Column[FigureRow]("95 %", 8, right=True, order=lambda row: _order(row.figures.answer_p95)),
        Column[FigureRow](
            "PINGS", 7, right=True, order=lambda row: row.figures.pings, largest_first=True
        ),
        Column[FigureRow](
            "PER ANSWER",
            11,
            right=True,
            from_width=90,
            order=lambda row: _order(row.figures.pings_per_answer),
        ),
        Column[FigureRow](
            "QUIET", 6, right=True, order=lambda row: row.figures.quiet_pings, largest_first=True
        ),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[FigureRow]:
        since = MONTH if query.filter.newer is None else query.filter.newer
        groups = set(map(FigureGroup, query.filter.statuses)) or set(FigureGroup)
        figures = await rt.figures.read(since)
        if not any(row.questions or row.answers or row.pings for row in figures):
            return Rows([])
        return Rows([FigureRow(row, query.now) for row in figures if row.by in groups])

    def key(self, row: FigureRow) -> str:
        return f"{row.figures.by}:{row.figures.value}"

    def table(self, row: FigureRow) -> tuple[str, Filter] | None:
        """Return the open questions that wait for a person."""
        is_person = row.figures.by is FigureGroup.PERSON
        return ("inbox", Filter(responders=(row.figures.value,))) if is_person else None

    def cells(self, row: FigureRow, now: datetime) -> Sequence[Cell]:
        figures = row.figures
        return (
            Cell(str(figures.by), "dim"),
            cells.text(name_text(figures), "key"),
            Cell(f"{figures.answers:,}"),
            Cell(time_text(figures.seen_p50)),
            Cell(time_text(figures.answer_p50)),
            Cell(time_text(figures.answer_p95)),
            Cell(f"{figures.pings:,}"),
            Cell(ratio_text(figures.pings_per_answer), "dim"),
            Cell(f"{figures.quiet_pings:,}", "bad" if figures.quiet_pings else "dim"),
        )

    def filter_fields(self, row: FigureRow) -> FilterFields:
        return FilterFields(name_text(row.figures), str(row.figures.by), at=row.at)


def _order(value: float | None) -> float:
    """Sort the slowest first, and rows without a value last."""
    return float("inf") if value is None else -value
