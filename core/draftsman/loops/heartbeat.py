"""The worker's heart: it says that the worker and its runs live, and learns what they lost."""

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
"""Seconds between two thoughts of beating: a third of what others give a free session lock."""
_log = logging.getLogger(__name__)


class Heartbeat:
    """Beats for one worker.

    A worker that was stopped for longer than its lease kills its runs before it does anything
    else: somebody else has them by now.
    """

    def __init__(
        self,
        worker: Worker,
        settings: WorkerSettings,
        register: Callable[[], Awaitable[None]],
        held: Callable[[], bool],
    ) -> None:
        self.stop = StopSignal()
        self._worker = worker
        self._settings = settings
        self._register = register
        self._held = held
        self._last = _clock()
        self._woken = asyncio.Event()
        self._outage = OutageGuard("the heartbeat")

    def wake(self) -> None:
        """Beat at once: the database says then which runs are to stop."""
        self._woken.set()

    async def run(self) -> None:
        """Beat until stopped; more often while the session lock does not speak for the worker."""
        stopping = asyncio.create_task(self._wake_to_stop())
        try:
            while not self.stop:
                woken = await self._pause(min(TICK, self._settings.heartbeat))
                due = _clock() - self._last >= self._settings.heartbeat - TICK / 2
                if not self.stop and (woken or due or not self._held()):
                    await self._outage.guard(self.beat)
        finally:
            stopping.cancel()

    async def beat(self) -> None:
        """Beat once; stop the runs that are lost or canceled."""
        if (silent := _clock() - self._last) > self._settings.lease:
            _log.warning("no heartbeat for %.0f s: all runs are given up", silent)
            for lost in list(self._worker.running.values()):
                lost.cancel("lost")
        registered, pulses = await self._worker.claim.heartbeat(
            self._worker.leases(), draining=bool(self._worker.stop)
        )
        self._last = _clock()
        if not registered:
            await self._register()
        for pulse in pulses:
            execution = self._worker.running.get(pulse.token)
            if not pulse.owned:
                self._worker.lose_run(pulse.token)
            elif execution is not None and pulse.canceled:
                execution.cancel("canceled")
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
    """Seconds that go on while the machine sleeps, where the system can tell."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)
