"""How soon questions are seen and answered, by person, channel and kind."""

from __future__ import annotations

from typing import Final

from draftsman.attention.figures import FigureGroup
from draftsman.entities.figures import FIGURES, FigureRow, name_text
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import Filter, FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows

MONTH: Final = 30 * 86_400.0
"""Seconds of the figures without `age<`."""


class FiguresResource(Resource[FigureRow]):
    """Figures of people's time."""

    name = "figures"
    help = "How soon people see and answer questions; others: kind:channel age<7d."
    kinds = tuple(map(str, FigureGroup))
    fields = ("status", "age")
    entity = FIGURES
    hint = "for others: figures kind:channel age<90d"

    async def read(self, rt: Runtime, query: Query) -> Rows[FigureRow]:
        since = query.filter.seconds(query.now, MONTH)
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

    def filter_fields(self, row: FigureRow) -> FilterFields:
        return FilterFields(name_text(row.figures), str(row.figures.by), at=row.at)
