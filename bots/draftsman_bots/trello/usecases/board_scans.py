"""Board scans in the background: a single read of a board for any number of its webhooks.

Moving a list of 260 cards sends 260 webhooks at once. Reading each card would use up the token's
rate limit; one request returns the labels of a thousand cards. A webhook that only asks for a scan
needs no reply that waits for it: the poller finds whatever a failed scan misses.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError, Failure
from draftsman_bots.trello.transport.rate_limit import background
from draftsman_bots.trello.usecases import board_reader, label_comparison, label_jobs

if TYPE_CHECKING:
    from draftsman.domain.people.actor import Actor
    from draftsman.domain.trello.board import BoardConfig
    from draftsman_bots.trello.context import BotContext

INTERVAL: Final = 2.0
"""Seconds between the starts of two scans of a board."""
SETTLE: Final = 0.25
"""Seconds before a scan, in which further webhooks of the same change arrive."""
_log = logging.getLogger(__name__)
Requested = dict[str, dict[str, "Actor"]]
"""Cards to look for, each with the labels that people put on it, as far as that is known."""


class BoardScans:
    """Scans requested and under way, at most one for each board."""

    def __init__(self) -> None:
        self._requested: dict[str, Requested] = {}
        self._running: set[str] = set()
        self._started: dict[str, float] = {}

    def request(
        self,
        context: BotContext,
        board: BoardConfig,
        card: str,
        label: str = "",
        by: Actor | None = None,
    ) -> None:
        """Look for a card in a scan of its board soon; `by` is the person who put this label on."""
        labels = self._requested.setdefault(board.board_id, {}).setdefault(card, {})
        if by is not None:
            labels[label] = by
        if board.board_id not in self._running:
            self._running.add(board.board_id)
            context.background.spawn(self._run(context, board))

    async def _run(self, context: BotContext, board: BoardConfig) -> None:
        """Scan until no request is left; requests made during a scan share the next scan."""
        id = board.board_id
        try:
            while id in self._requested:
                wait = self._started.get(id, 0.0) + INTERVAL - time.monotonic()
                await asyncio.sleep(max(SETTLE, wait))
                self._started[id] = time.monotonic()
                await _scan(context, board, self._requested.pop(id))
        except DraftsmanError as error:
            self._requested.pop(id, None)
            _log.warning("board %s: left to the next poll: %s", board.name, error)
        finally:
            self._running.discard(id)


async def _scan(context: BotContext, board: BoardConfig, requested: Requested) -> None:
    """Read the cards of a board and submit the jobs of new labels; raises DraftsmanError.

    Cards that were not requested are left out: their own webhook names the person.
    """
    began = await context.rt.boards.clock()
    cards = await board_reader.cards(context.trello, board.board_id)
    selected = {id: card for id, card in cards.items() if id in requested}
    new, _ = await label_comparison.compare(context, board, selected, began)
    for episode in new:
        by = requested[episode.card].get(episode.label)
        try:
            with background():
                await label_jobs.process_episode(context, board, episode, by)
        except Failure as error:
            if error.retry_after is not None:
                raise
            _log.warning("card %s: left to the next poll: %s", episode.card, error)
