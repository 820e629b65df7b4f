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

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Set the signal."""
        self._event.set()

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
    """Logs the start and the end of a database outage once each."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._unavailable = False

    @property
    def unavailable(self) -> bool:
        """Whether the last `guard` met a database error."""
        return self._unavailable

    async def guard(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Await `work`; return False on a database error, logged once for each outage."""
        try:
            await work()
        except DraftsmanError as error:
            if not self._unavailable:
                _log.warning("%s: database unavailable, retrying: %s", self._name, error)
            self._unavailable = True
            return False
        if self._unavailable:
            _log.warning("%s: database available again", self._name)
        self._unavailable = False
        return True
