"""The one source of everything shown: hears, looks, posts.

It wakes by a notification, by somebody who asks, or each second; it looks at the feed of events,
and reads the page in view only when something happened or its beat is over. So many changes cost
one look in 250 ms, and none costs one small query a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from textual.message import Message

from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.services.jobs.read_model import PAGE_SIZE
from draftsman_tui.dashboard.polling.messages import (
    ConnectionLost,
    LoadRejected,
    Reconnected,
    RowsLoaded,
    StatsUpdated,
)
from draftsman_tui.dashboard.polling.stats_poller import StatsPoller
from draftsman_tui.dashboard.resource import Query, Resource

if TYPE_CHECKING:
    from draftsman.domain.event import Event
    from draftsman.runtime import Runtime

GAP: Final = 0.25
"""Seconds between two looks while things change."""
IDLE: Final = 1.0
"""Seconds between two looks at the feed when nothing wakes us."""
QUIET: Final = 10.0
"""Seconds between two reads of nothing in view."""
LONGEST_RETRY: Final = 10.0
"""Seconds that a lost database is waited for at most, doubled from one."""
PATIENCE: Final = 1.0
"""Seconds that a look may take before a connection is tried: the pool waits for one much longer."""
PROBE: Final = 1.0
"""Seconds that a connection may take when it is tried whether the database can be reached."""


class Loader(Protocol):
    """What the live source looks at: whatever the desk in view shows."""

    @property
    def poll_interval(self) -> float:
        """Seconds after which it looks again though no event told of a change."""

    def is_affected_by(self, events: Sequence[Event]) -> bool:
        """Return whether these may have changed what it shows.

        None at all: something was notified, and is not in the feed yet.
        """

    async def read(self, rt: Runtime, now: datetime) -> Message:
        """Return what there is, to be posted; `now` is by the database's clock."""


@dataclass(frozen=True, slots=True)
class TableLoader:
    """A look at a table."""

    resource: Resource[Any]
    query: Query

    @property
    def poll_interval(self) -> float:
        """As often as the resource wants."""
        return self.resource.poll_interval

    def is_affected_by(self, events: Sequence[Event]) -> bool:
        """Return True: any event may change a row."""
        return True

    async def read(self, rt: Runtime, now: datetime) -> RowsLoaded:
        """Return the rows."""
        query = replace(self.query, now=now)
        return RowsLoaded(self.resource, query, await self.resource.fetch(rt, query))


class Refresher:
    """Looks at the database for one dashboard, and posts what it saw."""

    def __init__(self, rt: Runtime, post: Callable[[Message], object]) -> None:
        self._rt = rt
        self._post = post
        self._counting = StatsPoller(rt, post)
        self.lost: ConnectionLost | None = None
        """What is wrong, while the database is away."""
        self._wanted: Loader | None = None
        self._asked = asyncio.Event()
        self._woken = asyncio.Event()
        self._cursor: tuple[int, int, int] | None = None
        self._read_at = -QUIET
        self._fresh_at: float | None = None
        """When the last look ended well, by the monotonic clock."""

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return self._counting.now

    @property
    def counted(self) -> StatsUpdated | None:
        """The last overview."""
        return self._counting.last

    def show(self, look: Loader | None) -> None:
        """Look at this from now on, at once."""
        self._wanted = look
        self.ask()

    def ask(self) -> None:
        """Look now: somebody did something."""
        self._asked.set()
        self._woken.set()

    def request_stats(self) -> None:
        """Count soon: something happened that no event tells of, as a worker that comes or goes."""
        self._counting.soon()

    async def run(self) -> None:
        """Look until cancelled; a database that is away is waited for."""
        ear = self._rt.listener(lambda *_: self._woken.set())
        hearing, counting = map(asyncio.create_task, (ear.run(), self._counting.run()))
        try:
            await self._look_for_ever()
        finally:
            ear.stop.set()
            counting.cancel()
            await asyncio.gather(hearing, counting, return_exceptions=True)

    async def _look_for_ever(self) -> None:
        delay = 1.0
        while True:
            try:
                changed = await self._look_in_time()
            except DatabaseUnreachable as error:
                self.lost = self._lost(error, delay)
                self._read_at = -math.inf  # what a look was asked for and did not read is read then
                self._post(self.lost)
                await self._wait(delay)
                delay = min(2 * delay, LONGEST_RETRY)
                await self._revive()
                continue
            if self.lost is not None:
                self._post(Reconnected())
            delay, self.lost = 1.0, None
            self._fresh_at = time.monotonic()
            await self._pause(changed)

    def _lost(self, error: DatabaseUnreachable, delay: float) -> ConnectionLost:
        retry_at = time.monotonic() + delay
        return ConnectionLost(str(error), retry_at, self._fresh_at, embedded=self._rt.embedded)

    async def _look_in_time(self) -> bool:
        """Look; give up as soon as no connection can be had, not when the pool does.

        Raises DatabaseUnreachable. A database that is reachable and slow is waited for.
        """
        if self.lost is not None:
            await self._probe()
        looking, patience = asyncio.create_task(self.look()), PATIENCE
        try:
            while not (await asyncio.wait({looking}, timeout=patience))[0]:
                await self._probe()
                patience *= 2
            return await looking
        finally:
            if not looking.done():
                looking.cancel()
                await asyncio.wait({looking})

    async def _probe(self) -> None:
        """Connect once; raises DatabaseUnreachable."""
        try:
            async with asyncio.timeout(PROBE):
                conn = await self._rt.db.dedicated_connection()
        except TimeoutError:
            raise DatabaseUnreachable(f"no connection within {PROBE:.0f} s") from None
        await conn.close()

    async def look(self) -> bool:
        """Look once; return whether something happened since the last time."""
        asked, woken = self._asked.is_set(), self._woken.is_set()
        first = self._cursor is None
        self._asked.clear()
        self._woken.clear()
        events = await self._happened()
        changed = bool(events)
        concerned = (changed or woken) and self._concerns(events)
        if asked or concerned or self._is_over(self._read_at, self._beat):
            await self._read()
        if changed or first:
            self._counting.changed()
        return changed

    async def _happened(self) -> list[Event]:
        if self._cursor is None:
            self._cursor = await self._rt.read_model.end_cursor()
            return []
        events = await self._rt.read_model.events(self._cursor)
        if events:
            self._cursor = events[-1].cursor
        if len(events) == PAGE_SIZE:  # who is that far behind wants the present, not the past
            self._cursor = await self._rt.read_model.end_cursor()
        return events

    def _concerns(self, events: list[Event]) -> bool:
        if self._wanted is None:
            return False
        return len(events) == PAGE_SIZE or self._wanted.is_affected_by(
            events
        )  # a full page: some were missed

    async def _read(self) -> None:
        if self._wanted is None:
            return
        try:
            found: Message = await self._wanted.read(self._rt, self.now)
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            found = LoadRejected(str(error))
        self._post(found)
        self._read_at = time.monotonic()

    @property
    def _beat(self) -> float:
        return self._wanted.poll_interval if self._wanted else QUIET

    @staticmethod
    def _is_over(since: float, seconds: float) -> bool:
        return time.monotonic() - since >= seconds

    async def _pause(self, changed: bool) -> None:
        """Wait for the next look: a person waits for nothing, changes wait for their turn."""
        await self._wait(GAP)
        if not changed and not self._woken.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE - GAP):
                    await self._woken.wait()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()

    async def _revive(self) -> None:
        """Start an embedded server that is gone; where that fails, the next look says why."""
        if self._rt.embedded:
            with contextlib.suppress(DraftsmanError):
                await self._rt.revive()
