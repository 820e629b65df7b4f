"""The poller: looks at every board in turn, in the one process that holds its lease.

A second one could do no harm, for everything is kept with a guard; it would only ask twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from draftsman.domain.ids import new_id
from draftsman.errors import DatabaseUnreachable, DraftsmanError, Failure
from draftsman.loops.lifecycle import OutageGuard, StopSignal
from draftsman_bots.trello.listeners import action_router
from draftsman_bots.trello.listeners.board_sync import BoardSync
from draftsman_bots.trello.transport.api_errors import ACCOUNT
from draftsman_bots.trello.usecases import board_reader, webhooks

if TYPE_CHECKING:
    from draftsman.domain.trello.board import BoardConfig
    from draftsman_bots.trello.context import BotContext

LEASE: Final = 30.0
"""Seconds of a lease; it is renewed three times as often."""
LEASE_RETRY: Final = 2.0
"""Seconds at most between two tries to take the lease."""
CHECK_INTERVAL: Final = 300.0
"""Seconds between two looks at what seldom changes: labels and webhooks."""
TOKEN: Final = "account"  # noqa: S105 - the name of a problem
_log = logging.getLogger(__name__)


class Poller:
    """Stands for the lease all the time, and polls while it holds it."""

    def __init__(
        self, desk: BotContext, every: float, sender: Callable[[], int | None] = lambda: None
    ) -> None:
        """With what returns the number of the session lock, None while it is not held."""
        self.stop = StopSignal()
        self._desk = desk
        self._every = every
        self._sender = sender
        self._owner = new_id()
        self._looker = BoardSync(desk)
        self._outage = OutageGuard("the poller of Trello")
        self._checked: dict[str, float] = {}

    async def run(self) -> None:
        """Stand and poll until stopped."""
        while not self.stop:
            await self._outage.guard(self._stand)
            await self.stop.wait(min(self._every, LEASE_RETRY))

    async def poll_once(self) -> float:
        """Look at every board once; return the seconds until Trello may be asked again."""
        wait = 0.0
        for board in await self._desk.rt.boards.all():
            if self.stop:
                break
            wait = max(wait, await self._look(board))
            if wait:
                break
        return wait

    async def _stand(self) -> None:
        term = await self._desk.rt.boards.acquire(self._owner, LEASE, self._sender())
        if term is None:
            return
        _log.info("polling Trello, term %s", term)
        self._desk.health.polling = True
        try:
            async with self._kept(term) as lost:
                while not self.stop and not lost.is_set():
                    wait = await self.poll_once()
                    await self.stop.wait(max(wait, self._every))
        finally:
            self._desk.health.polling = False
            with contextlib.suppress(DraftsmanError):
                await self._desk.rt.boards.resign(self._owner, term)

    @contextlib.asynccontextmanager
    async def _kept(self, term: int) -> AsyncIterator[asyncio.Event]:
        """Renew the lease; the event says that it is lost, and cuts short what is being done."""
        lost, doing, boards = asyncio.Event(), asyncio.current_task(), self._desk.rt.boards

        async def keep() -> None:
            until = time.monotonic() + LEASE
            while time.monotonic() < until:
                await asyncio.sleep(LEASE / 3)
                asked = time.monotonic()
                try:
                    if not await boards.renew(self._owner, term, LEASE, self._sender()):
                        break
                    until = asked + LEASE
                except DraftsmanError as error:
                    _log.warning("the poller's lease was not renewed: %s", error)
            lost.set()
            if doing is not None:
                doing.cancel()

        keeping = asyncio.create_task(keep())
        try:
            yield lost
        except asyncio.CancelledError:
            if not lost.is_set() or doing is None:
                raise
            doing.uncancel()
            _log.warning("polling Trello no longer: the lease is another's, or over")
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _look(self, board: BoardConfig) -> float:
        """Look at a board; return how long to wait, if nothing can be asked for a while."""
        desk, key = self._desk, f"board:{board.board_id}"
        try:
            await self._looker.look(board)
            await self._check(board)
        except DatabaseUnreachable:
            raise
        except Failure as error:
            desk.health.count_poll("failed")
            if error.code == ACCOUNT:
                desk.health.problem(TOKEN, f"Trello refuses the bot: {error}")
            else:
                desk.health.problem(key, f"board {board.name} cannot be read: {error}")
            return 0.0 if error.retry_after is None else error.retry_after
        except DraftsmanError as error:
            desk.health.count_poll("failed")
            _log.warning("board %s is looked at again: %s", board.name, error)
            return 0.0
        desk.health.count_poll("done")
        desk.health.clear(key, TOKEN)
        return 0.0

    async def _check(self, board: BoardConfig) -> None:
        """Look, now and then, at what seldom changes."""
        now = time.monotonic()
        if now - self._checked.get(board.board_id, -math.inf) < CHECK_INTERVAL:
            return
        await self.check(board)
        self._checked[board.board_id] = now

    async def check(self, board: BoardConfig) -> None:
        """See that the board has its labels, and its webhook if there is to be one."""
        there = await board_reader.label_ids(self._desk.trello, board.board_id)
        for label in [*board.labels, *filter(None, [board.queued_label_id])]:
            if label in there:
                self._desk.health.clear(f"label:{label}")
            else:
                action_router.report_missing_label(self._desk, board, label)
        await webhooks.ensure(self._desk, board)
