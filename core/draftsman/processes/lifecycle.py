"""Life cycle of long-running loops: stop signals, and survival of database outages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable

from draftsman.errors import DraftsmanError

_log = logging.getLogger(__name__)


class StopSignal:
    """A stop signal that is set once and can be awaited anywhere."""

    def __init__(self, on_set: Callable[[], None] = lambda: None) -> None:
        """`on_set` is called once, after the signal is set: it wakes who waits for other things."""
        self._event = asyncio.Event()
        self._on_set = on_set

    def set(self) -> None:
        """Set the signal."""
        if not self:
            self._event.set()
            self._on_set()

    def __bool__(self) -> bool:
        return self._event.is_set()

    async def wait(self, seconds: float) -> bool:
        """Wait for the signal for at most `seconds`; return whether it is set."""
        limit = None if math.isinf(seconds) else seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._event.wait()
        return bool(self)


class OutageGuard:
    """Logs the start and the end of an outage once each."""

    def __init__(self, name: str, needs: str = "database") -> None:
        self._name = name
        self._needs = needs
        self._unavailable = False

    @property
    def unavailable(self) -> bool:
        """Whether the last `guard` met an error."""
        return self._unavailable

    async def guard(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Await `work`; return False on a DraftsmanError, logged once for each outage."""
        try:
            await work()
        except DraftsmanError as error:
            if not self._unavailable:
                _log.warning("%s: %s unavailable, retrying: %s", self._name, self._needs, error)
            self._unavailable = True
            return False
        if self._unavailable:
            _log.warning("%s: %s available again", self._name, self._needs)
        self._unavailable = False
        return True

    async def repeat(
        self, work: Callable[[], Awaitable[None]], seconds: float, stop: StopSignal
    ) -> None:
        """`guard` the work again and again until stopped, each time after `seconds`."""
        while not await stop.wait(seconds):
            await self.guard(work)
