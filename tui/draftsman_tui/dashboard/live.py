"""The one source of everything shown: hears, looks, posts.

It wakes by a notification, by somebody who asks, or each second; it looks at the feed of events,
and reads the page in view only when something happened or its beat is over. So many changes cost
one look in 250 ms, and none costs one small query a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.services.inspect import PAGE
from draftsman_tui.dashboard.counting import Counting
from draftsman_tui.dashboard.messages import Back, Found, Lost, Refused
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


class Live:
    """Looks at the database for one dashboard, and posts what it saw."""

    def __init__(self, rt: Runtime, post: Callable[[Message], object]) -> None:
        self._rt = rt
        self._post = post
        self._wanted: tuple[Resource[Any], Query] | None = None
        self._asked = asyncio.Event()
        self._woken = asyncio.Event()
        self._cursor: tuple[int, int, int] | None = None
        self._read_at = -QUIET
        self.counting = Counting(rt, post)

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return self.counting.now

    def show(self, resource: Resource[Any], query: Query) -> None:
        """Look at this from now on, at once."""
        self._wanted = resource, query
        self.ask()

    def ask(self) -> None:
        """Look now: somebody did something."""
        self._asked.set()
        self._woken.set()

    async def run(self) -> None:
        """Look until cancelled; a database that is away is waited for."""
        ear = self._rt.ear(lambda *_: self._woken.set())
        beside = [asyncio.create_task(one) for one in (ear.run(), self.counting.run())]
        try:
            await self._look_for_ever()
        finally:
            ear.stop.set()
            beside[1].cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _look_for_ever(self) -> None:
        delay, lost = 1.0, False
        while True:
            try:
                changed = await self.look()
            except DatabaseUnreachable as error:
                self._post(Lost(str(error), time.monotonic() + delay))
                lost = True
                await self._wait(delay)
                delay = min(2 * delay, LONGEST_RETRY)
                await self._revive()
                continue
            if lost:
                self._post(Back())
            delay, lost = 1.0, False
            await self._pause(changed)

    async def look(self) -> bool:
        """Look once; return whether something happened since the last time."""
        asked, first = self._woken.is_set(), self._cursor is None
        self._asked.clear()
        self._woken.clear()
        events = await self._happened()
        changed = bool(events)
        if asked or changed or self._is_over(self._read_at, self._beat):
            await self._read()
        if changed or first:
            self.counting.changed()
        return changed

    async def _happened(self) -> list[Event]:
        if self._cursor is None:
            self._cursor = await self._rt.inspect.feed_end()
            return []
        events = await self._rt.inspect.feed(self._cursor)
        if events:
            self._cursor = events[-1].cursor
        if len(events) == PAGE:  # who is that far behind wants the present, not the past
            self._cursor = await self._rt.inspect.feed_end()
        return events

    async def _read(self) -> None:
        if self._wanted is None:
            return
        resource, query = self._wanted
        query = replace(query, now=self.now)
        try:
            rows = await resource.fetch(self._rt, query)
        except DatabaseUnreachable:
            raise
        except DraftsmanError as error:
            self._post(Refused(str(error)))
        else:
            self._post(Found(resource, query, rows))
        self._read_at = time.monotonic()

    @property
    def _beat(self) -> float:
        return self._wanted[0].beat if self._wanted else QUIET

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
