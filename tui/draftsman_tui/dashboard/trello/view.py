"""Watched Trello boards."""

from __future__ import annotations

from draftsman.runtime import Runtime
from draftsman_bots.trello.command_line.board_rows import BOARDS, BoardRow
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows


class BoardsResource(Resource[BoardRow]):
    """Boards whose labels create jobs."""

    name = "boards"
    number_key = "9"
    short_name = "board"
    help = "Trello boards whose labels create jobs."
    entity = BOARDS

    async def read(self, rt: Runtime, query: Query) -> Rows[BoardRow]:
        from draftsman_bots.trello.records.service import boards_of

        boards = []
        for config in await boards_of(rt).all():
            cursor = await boards_of(rt).cursor(config.board_id)
            boards.append(BoardRow(config, None if cursor is None else cursor.polled_at))
        return Rows(boards)

    def key(self, row: BoardRow) -> str:
        return row.config.board_id

    def page_url(self, row: BoardRow) -> str | None:
        return row.config.url if row.config.url.startswith("https://") else None

    def filter_fields(self, row: BoardRow) -> FilterFields:
        return FilterFields(f"{row.config.name} {row.config.board_id} {row.config.url}")
