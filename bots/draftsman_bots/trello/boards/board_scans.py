"""Board scans in the background: a single read of a board for any number of its webhooks.

Moving a list of 260 cards sends 260 webhooks at once. Reading each card would use up the token's
rate limit; one request returns the labels of a thousand cards. A webhook that only asks for a scan
needs no reply that waits for it: the poller finds whatever a failed scan misses.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError, Failure
from draftsman_bots.trello.boards import board_reader, label_comparison
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import label_jobs
from draftsman_bots.trello.transport.rate_limit import background

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman_bots.trello.context import BotContext, Requested
    from draftsman_bots.trello.records.board import BoardConfig

INTERVAL: Final = 2.0
"""Seconds between the starts of two scans of a board."""
SETTLE: Final = 0.25
"""Seconds before a scan, in which further webhooks of the same change arrive."""
_log = logging.getLogger(__name__)


def request_scan(
    context: BotContext,
    board: BoardConfig,
    card: str,
    added: Mapping[str, Actor] = MappingProxyType({}),
) -> None:
    """Look for a card in a scan of its board soon; `added` has the people who added labels."""
    scans = context.scans
    id = board.board_id
    scans.requested.setdefault(id, {}).setdefault(card, {}).update(added)
    if id not in scans.running:
        scans.running.add(id)
        context.background.spawn(_run(context, board))


async def _run(context: BotContext, board: BoardConfig) -> None:
    """Scan until no request is left; requests made during a scan share the next scan."""
    scans = context.scans
    id = board.board_id
    try:
        while id in scans.requested:
            wait = scans.started.get(id, 0.0) + INTERVAL - time.monotonic()
            await asyncio.sleep(max(SETTLE, wait))
            scans.started[id] = time.monotonic()
            await _scan(context, board, scans.requested.pop(id))
    except DraftsmanError as error:
        scans.requested.pop(id, None)
        _log.warning("board %s: left to the next poll: %s", board.name, error)
    finally:
        scans.running.discard(id)


async def _scan(context: BotContext, board: BoardConfig, requested: Requested) -> None:
    """Read the cards of a board and submit the jobs of new labels; raises DraftsmanError.

    Cards that were not requested are left out: their own webhook names the person.
    """
    began = await boards_of(context.rt).clock()
    cards = await board_reader.cards(context.trello, board.board_id)
    selected = {id: card for id, card in cards.items() if id in requested}
    new, _ = await label_comparison.compare(context, board, selected, began, requested)
    for card in selected:
        new += await label_jobs.named_episodes(context, card, requested[card])
    for episode in new:
        by = requested[episode.card].get(episode.label)
        try:
            with background():
                await label_jobs.process_episode(context, board, episode, by)
        except Failure as error:
            if error.retry_after is not None:
                raise
            _log.warning("card %s: left to the next poll: %s", episode.card, error)
