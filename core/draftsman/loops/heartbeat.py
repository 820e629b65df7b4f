"""The heartbeat of a worker and its runs, which also reports lost, canceled and paused runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.loops.lifecycle import OutageGuard, StopSignal
from draftsman.loops.worker import Worker
from draftsman.settings import WorkerSettings

TICK: Final = 5.0
"""Heartbeat check interval, in seconds: a third of the time that a free session lock is allowed."""
_log = logging.getLogger(__name__)


class Heartbeat:
    """Sends the heartbeats of a worker.

    A worker that was suspended for longer than its lease first cancels its runs: other workers have
    rescued them.
    """

    def __init__(
        self,
        worker: Worker,
        settings: WorkerSettings,
        register: Callable[[], Awaitable[None]],
        lock_held: Callable[[], bool],
    ) -> None:
        self.stop = StopSignal()
        self._worker = worker
        self._settings = settings
        self._register = register
        self._lock_held = lock_held
        self._last = _clock()
        self._woken = asyncio.Event()
        self._outage = OutageGuard("heartbeat")

    @property
    def unavailable(self) -> bool:
        """Whether the last heartbeat did not reach the database."""
        return self._outage.unavailable

    @property
    def silence(self) -> float:
        """Seconds since the last heartbeat."""
        return _clock() - self._last

    def wake(self) -> None:
        """Send a heartbeat at once, to learn which runs must stop."""
        self._woken.set()

    async def run(self) -> None:
        """Send heartbeats until stopped, more often while the session lock is not held."""
        stopping = asyncio.create_task(self._wake_to_stop())
        try:
            while not self.stop:
                woken = await self._pause(min(TICK, self._settings.heartbeat))
                due = _clock() - self._last >= self._settings.heartbeat - TICK / 2
                if not self.stop and (woken or due or not self._lock_held()):
                    await self._outage.guard(self.beat)
        finally:
            stopping.cancel()

    async def beat(self) -> None:
        """Send a heartbeat; stop the runs that are lost, canceled or paused."""
        if (silent := _clock() - self._last) > self._settings.lease:
            _log.warning("no heartbeat for %.0f s: stopping all runs", silent)
            for running in list(self._worker.running.values()):
                running.cancel("lost")
        sent = _clock()
        registered, states = await self._worker.claim.heartbeat(
            self._worker.leases(), draining=bool(self._worker.stop)
        )
        self._last = _clock()
        if self._last - sent > self._settings.lease:  # suspended: the reply may be outdated
            self.wake()
        if not registered:
            await self._register()
        for state in states:
            execution = self._worker.running.get(state.token)
            if not state.owned:
                self._worker.lose_run(state.token)
            elif execution is not None and state.canceled:
                execution.cancel("canceled")
            elif execution is not None and state.paused:
                execution.cancel("paused")
            elif execution is not None:
                execution.beat()

    async def _pause(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken

    async def _wake_to_stop(self) -> None:
        await self.stop.wait(math.inf)
        self.wake()


def _clock() -> float:
    """Return a monotonic time in seconds that includes suspend, if the system has such a clock."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
