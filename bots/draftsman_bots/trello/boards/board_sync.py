"""Synchronization of a board: labels on its cards, new actions and unfinished episodes."""

from __future__ import annotations

import logging
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.errors import Failure
from draftsman.trello.board import BoardConfig
from draftsman_bots.trello import action_router
from draftsman_bots.trello.boards import board_reader, label_comparison
from draftsman_bots.trello.deliveries.due_dates import show_expiry
from draftsman_bots.trello.requests import label_jobs
from draftsman_bots.trello.transport.rate_limit import background

if TYPE_CHECKING:
    from trello import Card

    from draftsman_bots.trello.context import BotContext

MAX_REMEMBERED: Final = 20_000
"""Handled actions to remember: the overlap returns them again."""
MAX_CHECKED: Final = 20
"""Cards per poll that had labels and are no longer on the board."""
_log = logging.getLogger(__name__)


class BoardSync:
    """Reads boards; its state is only a cache."""

    def __init__(self, context: BotContext) -> None:
        self._context = context
        self._done: OrderedDict[str, None] = OrderedDict()
        self._checked: OrderedDict[str, None] = OrderedDict()

    async def sync(self, board: BoardConfig) -> None:
        """Read a board and continue its episodes; raises Failure, DraftsmanError."""
        boards = self._context.rt.boards
        cursor = await boards.cursor(board.board_id)
        began = await boards.clock()
        cards = await board_reader.cards(self._context.trello, board.board_id)
        if cursor is None:
            await self._begin(board, cards, began)
            cursor = await boards.cursor(board.board_id)
        until = None
        if cursor is not None:
            _, known = await label_comparison.compare(self._context, board, cards, began)
            await self._check_missing(board, sorted({card for card, _ in known} - cards.keys()))
            until = await self._catch_up(board, cursor.actions_until)
        await boards.advance(board.board_id, until)
        await self._show_expiries(board)
        await self.continue_episodes(board)

    async def continue_episodes(self, board: BoardConfig) -> None:
        """Continue the board's episodes; a failed episode does not affect the others."""
        for episode in await self._context.rt.boards.due(board.board_id):
            try:
                with background():
                    await label_jobs.process_episode(self._context, board, episode)
            except Failure as error:
                if error.retry_after is not None:
                    raise
                _log.warning("card %s failed, will retry: %s", episode.card, error)

    async def _show_expiries(self, board: BoardConfig) -> None:
        """Bring due dates up to date whose questions were extended or closed elsewhere."""
        context = self._context
        for card in await context.rt.boards.cards.stale_due_dates(board.board_id):
            with background():
                await show_expiry(context.trello, context.rt.boards.cards, board, card)

    async def _begin(self, board: BoardConfig, cards: dict[str, Card], began: datetime) -> None:
        """Record the first poll's labels as existing, unless `include_existing` is set."""
        existing = [] if board.include_existing else label_comparison.labeled(board, cards)
        until = await board_reader.last_activity(self._context.trello, board.board_id) or began
        if await self._context.rt.boards.baseline(board.board_id, existing, began, until):
            _log.info("board %s: %s existing labels recorded", board.name, len(existing))

    async def _check_missing(self, board: BoardConfig, missing: list[str]) -> None:
        """Check labeled cards that left the board: on another board they lose the label."""
        for card in [card for card in missing if card not in self._checked][:MAX_CHECKED]:
            await label_jobs.check_card(self._context, board, card)
            _remember(self._checked, card)
        for card in [card for card in self._checked if card not in missing]:
            del self._checked[card]

    async def _catch_up(self, board: BoardConfig, since: datetime) -> datetime | None:
        """Handle the actions since a time; return the date of the last."""
        context, until = self._context, None
        for action in await board_reader.actions(
            context.trello, board.board_id, since - board_reader.OVERLAP
        ):
            if action.id not in self._done:
                outcome = await action_router.on_poll(context, board, action)
                context.health.count_action("poll", action.kind, outcome)
                _remember(self._done, action.id)
            until = action.date or until
        return until


def _remember(known: OrderedDict[str, None], key: str) -> None:
    known[key] = None
    if len(known) > MAX_REMEMBERED:
        known.popitem(last=False)
