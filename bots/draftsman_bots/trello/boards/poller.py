"""Poller: reads every board in turn, in the process that holds the lease.

A second poller is harmless, since every write is guarded; it only doubles the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.ids import new_id
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman_bots.trello import action_router
from draftsman_bots.trello.boards import board_reader, label_comparison, webhooks
from draftsman_bots.trello.deliveries.due_dates import show_expiry
from draftsman_bots.trello.identity import resolve_identity
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import label_jobs
from draftsman_bots.trello.transport.api_errors import ACCOUNT
from draftsman_bots.trello.transport.rate_limit import background

if TYPE_CHECKING:
    from trello import Card

    from draftsman_bots.trello.context import BotContext


# Synchronization of a board: labels on its cards, new actions and unfinished episodes.


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
        boards = boards_of(self._context.rt)
        cursor = await boards.cursor(board.board_id)
        began = await boards.clock()
        cards = await board_reader.cards(self._context.trello, board.board_id)
        if cursor is None:
            await self._begin(board, cards, began)
            cursor = await boards.cursor(board.board_id)
        until = None
        if cursor is not None:
            _, recorded = await label_comparison.compare(self._context, board, cards, began)
            await self._check_missing(board, sorted({card for card, _ in recorded} - cards.keys()))
            until = await self._catch_up(board, cursor.actions_until)
        await boards.advance(board.board_id, until)
        await self._show_expiries(board)
        await self.continue_episodes(board)

    async def continue_episodes(self, board: BoardConfig) -> None:
        """Continue the board's episodes; a failed episode does not affect the others."""
        for episode in await boards_of(self._context.rt).due(board.board_id):
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
        for card in await boards_of(context.rt).cards.stale_due_dates(board.board_id):
            with background():
                await show_expiry(context.trello, boards_of(context.rt).cards, board, card)

    async def _begin(self, board: BoardConfig, cards: dict[str, Card], began: datetime) -> None:
        """Record the first poll's labels as existing, unless `include_existing` is set."""
        existing = [] if board.include_existing else label_comparison.labeled(board, cards)
        until = await board_reader.last_activity(self._context.trello, board.board_id) or began
        if await boards_of(self._context.rt).baseline(board.board_id, existing, began, until):
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
        context = self._context
        until = None
        for action in await board_reader.actions(
            context.trello, board.board_id, since - board_reader.OVERLAP
        ):
            if action.id not in self._done:
                outcome = await action_router.on_poll(context, board, action)
                context.health.count_action("poll", action.kind, outcome)
                _remember(self._done, action.id)
            until = action.date or until
        return until


def _remember(keys: OrderedDict[str, None], key: str) -> None:
    keys[key] = None
    if len(keys) > MAX_REMEMBERED:
        keys.popitem(last=False)


LEASE: Final = 30.0
"""Seconds of the lease; it is renewed after each third."""
LOCK_CHECK: Final = 1.0
"""Seconds between renewals until the lease ends with this process, whose lock it has then."""
LEASE_RETRY: Final = 2.0
"""Maximum seconds between two attempts to acquire the lease."""
CHECK_INTERVAL: Final = 300.0
"""Seconds between two checks of a board's labels and webhook."""
TOKEN: Final = "account"  # noqa: S105 - the name of a problem


class Poller:
    """Competes for the lease, and polls while it holds the lease."""

    def __init__(
        self, context: BotContext, interval: float, sender: Callable[[], int | None] = lambda: None
    ) -> None:
        """Create a poller; `sender` returns the number of the held session lock, or None."""
        self.stop = StopSignal()
        self._context = context
        self._interval = interval
        self._sender = sender
        self._owner = new_id()
        self._sync = BoardSync(context)
        self._outage = OutageGuard("the Trello poller")
        self._checked: dict[str, float] = {}
        self._last: str | None = None
        """The board at which the last round ended early."""

    async def run(self) -> None:
        """Acquire the lease and poll, until stopped.

        Only once the bot's account is known: its own comments are not answers. Raises ConfigError
        if the account cannot be used.
        """
        if not self._context.me:
            await resolve_identity(self._context, self.stop)
        while not self.stop:
            await self._outage.guard(self._hold_lease)
            await self.stop.wait(min(self._interval, LEASE_RETRY))

    async def poll_once(self) -> float:
        """Poll every board once; return the seconds to wait for Trello's rate limit.

        After a limit, the next round begins with the next board: none is always left out.
        """
        boards = await boards_of(self._context.rt).all()
        ids = [board.board_id for board in boards]
        first = ids.index(self._last) + 1 if self._last in ids else 0
        for board in (*boards[first:], *boards[:first]):
            if self.stop:
                break
            if wait := await self._poll(board):
                self._last = board.board_id
                return wait
        self._last = None
        return 0.0

    async def _hold_lease(self) -> None:
        term = await boards_of(self._context.rt).acquire(self._owner, LEASE, self._sender())
        if term is None:
            return
        _log.info("polling Trello, term %s", term)
        self._context.health.polling = True
        try:
            async with self._renewing(term) as lost:
                while not self.stop and not lost.is_set():
                    wait = await self.poll_once()
                    await self.stop.wait(max(wait, self._interval))
        finally:
            self._context.health.polling = False
            with contextlib.suppress(DraftsmanError):
                await boards_of(self._context.rt).resign(self._owner, term)

    @contextlib.asynccontextmanager
    async def _renewing(self, term: int) -> AsyncIterator[asyncio.Event]:
        """Renew the lease; when it is lost, set the event and cancel the block."""
        lost = asyncio.Event()
        polling = asyncio.current_task()
        boards = boards_of(self._context.rt)

        async def renew() -> None:
            until = time.monotonic() + LEASE
            lock = None
            while time.monotonic() < until:
                await asyncio.sleep(LOCK_CHECK if lock is None else LEASE / 3)
                requested = time.monotonic()
                lock = self._sender()
                try:
                    if not await boards.renew(self._owner, term, LEASE, lock):
                        break
                    until = requested + LEASE
                except DraftsmanError as error:
                    _log.warning("cannot renew the poller lease: %s", error)
            lost.set()
            if polling is not None:
                polling.cancel()

        renewal = asyncio.create_task(renew())
        try:
            yield lost
        except asyncio.CancelledError:
            if not lost.is_set() or polling is None:
                raise
            polling.uncancel()
            _log.warning("stopped polling Trello: the lease was lost")
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)

    async def _poll(self, board: BoardConfig) -> float:
        """Poll a board; return the seconds to wait for Trello's rate limit."""
        context = self._context
        key = f"board:{board.board_id}"
        try:
            await self._sync.sync(board)
            await self._check(board)
        except DatabaseUnreachable:
            raise
        except Failure as error:
            context.health.count_poll("failed")
            if error.code == ACCOUNT:
                context.health.problem(TOKEN, f"Trello rejected the bot's credentials: {error}")
            else:
                context.health.problem(key, f"board {board.name} cannot be read: {error}")
            return 0.0 if error.retry_after is None else error.retry_after
        except DraftsmanError as error:
            context.health.count_poll("failed")
            _log.warning("board %s: poll failed, will retry: %s", board.name, error)
            return 0.0
        context.health.count_poll("done")
        context.health.clear(key, TOKEN)
        return 0.0

    async def _check(self, board: BoardConfig) -> None:
        """Check labels and webhook if the last check is too long ago."""
        now = time.monotonic()
        if now - self._checked.get(board.board_id, -math.inf) < CHECK_INTERVAL:
            return
        await self.check(board)
        self._checked[board.board_id] = now

    async def check(self, board: BoardConfig) -> None:
        """Report missing labels of a board and repair its webhook."""
        existing = await board_reader.label_ids(self._context.trello, board.board_id)
        for label in [*board.labels, *filter(None, [board.queued_label_id])]:
            if label in existing:
                self._context.health.clear(f"label:{label}")
            else:
                action_router.report_missing_label(self._context, board, label)
        await webhooks.ensure(self._context, board)
