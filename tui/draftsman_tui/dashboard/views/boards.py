"""Boards of Trello that are watched."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.domain.trello.board import BoardConfig
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import FilterFields
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class BoardsResource(Resource[BoardConfig]):
    """Where labels make jobs."""

    name = "boards"
    help = "The boards whose labels make jobs."
    empty = "No board is watched."
    columns = (
        Column[BoardConfig]("BOARD", 26, order=lambda board: board.name.casefold()),
        Column[BoardConfig]("LABELS", 0),
        Column[BoardConfig]("HEARD BY", 8, order=lambda board: board.webhook_id is None),
        Column[BoardConfig]("ID", 24, from_width=100),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[BoardConfig]:
        """Return all of them."""
        return Rows(await rt.boards.all())

    def key(self, row: BoardConfig) -> str:
        """Return Trello's id."""
        return row.board_id

    def address(self, row: BoardConfig) -> str | None:
        """Return its page."""
        return row.url if row.url.startswith("https://") else None

    def cells(self, row: BoardConfig, now: datetime) -> Sequence[Cell]:
        """Return which labels make which jobs."""
        labels = (f"{rule.name or id}: {rule.mode}" for id, rule in row.labels.items())
        return (
            cells.text(row.name, "key"),
            cells.text(", ".join(labels)),
            Cell("webhook" if row.webhook_id else "polling"),
            Cell(row.board_id, "dim"),
        )

    def filter_fields(self, row: BoardConfig) -> FilterFields:
        """Return what a filter looks at."""
        return FilterFields(f"{row.name} {row.board_id} {row.url}")
