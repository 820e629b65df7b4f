"""The life cycle that long-lived things share: run until stopped, survive the database."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable

from draftsman.errors import DraftsmanError

_log = logging.getLogger(__name__)


class StopSignal:
    """A signal to end, given once and waited for anywhere."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        """Ask everybody to end."""
        self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()

    async def wait(self, seconds: float) -> bool:
        """Wait for the signal at most so long; return whether it was given."""
        limit = None if math.isinf(seconds) else seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._event.wait()
        return bool(self)


class OutageGuard:
    """Says once that the database went away, and once that it came back."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._away = False

    async def guard(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Await `work`; return False, and say so once, while the database is away or refuses."""
        try:
            await work()
        except DraftsmanError as error:
            if not self._away:
                _log.warning("%s waits for the database: %s", self._what, error)
            self._away = True
            return False
        if self._away:
            _log.warning("%s has the database again", self._what)
        self._away = False
        return True
