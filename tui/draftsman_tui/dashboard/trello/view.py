"""Watched Trello boards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.trello.board import BoardConfig
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class BoardsResource(Resource[BoardConfig]):
    """Boards whose labels create jobs."""

    name = "boards"
    number_key = "9"
    short_name = "board"
    help = "Trello boards whose labels create jobs."
    empty = "No boards. To watch a board: draftsman boards add"
    columns = (
        Column[BoardConfig]("BOARD", 26, order=lambda board: board.name.casefold()),
        Column[BoardConfig]("LABELS", 0),
        Column[BoardConfig]("VIA", 8, order=lambda board: board.webhook_id is None),
        Column[BoardConfig]("ID", 24, from_width=100),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[BoardConfig]:
        return Rows(await rt.boards.all())

    def key(self, row: BoardConfig) -> str:
        return row.board_id

    def page_url(self, row: BoardConfig) -> str | None:
        return row.url if row.url.startswith("https://") else None

    def cells(self, row: BoardConfig, now: datetime) -> Sequence[Cell]:
        labels = (f"{rule.name or id}: {rule.mode}" for id, rule in row.labels.items())
        return (
            cells.text(row.name, "key"),
            cells.text(", ".join(labels)),
            Cell("webhook" if row.webhook_id else "polling"),
            Cell(row.board_id, "dim"),
        )

    def filter_fields(self, row: BoardConfig) -> FilterFields:
        return FilterFields(f"{row.name} {row.board_id} {row.url}")
