"""Deadlines of runs: a single timer for all of them, set for the earliest."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextvars import Context


class Deadlines:
    """Deadlines of callbacks, each of which is called at most once.

    Nearly all of them are removed before they expire. The timer stays as it is then, and is set
    again when it fires: a timer for each run would cost more than the deadline itself.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        """The event loop, which `get_running_loop` asks the system for at each call."""
        self._times: dict[Callable[[], None], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf

    def __len__(self) -> int:
        return len(self._times)

    def add(self, callback: Callable[[], None], seconds: float) -> None:
        """Call `callback` after `seconds`, unless it is removed before."""
        self._times[callback] = deadline = self.loop.time() + seconds
        if deadline < self._next:
            self._set_timer(deadline)

    def remove(self, callback: Callable[[], None]) -> float:
        """Remove a callback; return the seconds that were left, 0 if it was called already."""
        now = self.loop.time()
        return max(0.0, self._times.pop(callback, now) - now)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = deadline
        # an own context: that of the run that adds it would be kept until the timer fires
        self._timer = self.loop.call_at(deadline, self._expire, context=Context())

    def _expire(self) -> None:
        now = max(self._next, self.loop.time())
        self._next, self._timer = math.inf, None
        for callback in sorted(self._times, key=self._times.__getitem__):
            deadline = self._times.get(callback, math.inf)  # an earlier callback may remove it
            if deadline <= now:
                del self._times[callback]
                callback()
        if self._times:
            self._set_timer(min(self._times.values()))
