"""Poller: reads every board in turn, in the process that holds the lease.

A second poller is harmless, since every write is guarded; it only doubles the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.ids import new_id
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman_bots.trello import action_router
from draftsman_bots.trello.boards import board_reader, webhooks
from draftsman_bots.trello.boards.board_sync import BoardSync
from draftsman_bots.trello.transport.api_errors import ACCOUNT

if TYPE_CHECKING:
    from draftsman.trello.board import BoardConfig
    from draftsman_bots.trello.context import BotContext

LEASE: Final = 30.0
"""Seconds of the lease; it is renewed after each third."""
LOCK_CHECK: Final = 1.0
"""Seconds between renewals until the lease ends with this process, whose lock it has then."""
LEASE_RETRY: Final = 2.0
"""Maximum seconds between two attempts to acquire the lease."""
CHECK_INTERVAL: Final = 300.0
"""Seconds between two checks of a board's labels and webhook."""
TOKEN: Final = "account"  # noqa: S105 - the name of a problem
_log = logging.getLogger(__name__)


class Poller:
    """Competes for the lease, and polls while it holds the lease."""

    def __init__(
        self, context: BotContext, every: float, sender: Callable[[], int | None] = lambda: None
    ) -> None:
        """Create a poller; `sender` returns the number of the held session lock, or None."""
        self.stop = StopSignal()
        self._context = context
        self._every = every
        self._sender = sender
        self._owner = new_id()
        self._sync = BoardSync(context)
        self._outage = OutageGuard("the Trello poller")
        self._checked: dict[str, float] = {}

    async def run(self) -> None:
        """Acquire the lease and poll, until stopped."""
        while not self.stop:
            await self._outage.guard(self._hold_lease)
            await self.stop.wait(min(self._every, LEASE_RETRY))

    async def poll_once(self) -> float:
        """Poll every board once; return the seconds to wait for Trello's rate limit."""
        wait = 0.0
        for board in await self._context.rt.boards.all():
            if self.stop:
                break
            wait = max(wait, await self._poll(board))
            if wait:
                break
        return wait

    async def _hold_lease(self) -> None:
        term = await self._context.rt.boards.acquire(self._owner, LEASE, self._sender())
        if term is None:
            return
        _log.info("polling Trello, term %s", term)
        self._context.health.polling = True
        try:
            async with self._renewing(term) as lost:
                while not self.stop and not lost.is_set():
                    wait = await self.poll_once()
                    await self.stop.wait(max(wait, self._every))
        finally:
            self._context.health.polling = False
            with contextlib.suppress(DraftsmanError):
                await self._context.rt.boards.resign(self._owner, term)

    @contextlib.asynccontextmanager
    async def _renewing(self, term: int) -> AsyncIterator[asyncio.Event]:
        """Renew the lease; when it is lost, set the event and cancel the block."""
        lost, polling, boards = asyncio.Event(), asyncio.current_task(), self._context.rt.boards

        async def renew() -> None:
            until, lock = time.monotonic() + LEASE, None
            while time.monotonic() < until:
                await asyncio.sleep(LOCK_CHECK if lock is None else LEASE / 3)
                requested, lock = time.monotonic(), self._sender()
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
        context, key = self._context, f"board:{board.board_id}"
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
