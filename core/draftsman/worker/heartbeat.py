"""The heartbeat of a worker and its runs, which also reports lost, canceled and paused runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.processes import clock
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman.settings.workers import WorkerSettings
from draftsman.worker.worker import Worker

TICK: Final = 5.0
"""Heartbeat check interval, in seconds: a third of the time that a free session lock is allowed."""


class Heartbeat:
    """Sends the heartbeats of a worker.

    A worker that was suspended for longer than its lease first cancels its runs: other workers have
    rescued them. `LeaseTimer` does so for a heartbeat that waits.
    """

    def __init__(
        self,
        worker: Worker,
        settings: WorkerSettings,
        *,
        register: Callable[[], Awaitable[None]],
        lock_held: Callable[[], bool],
    ) -> None:
        self.stop = StopSignal(self.wake)
        self._worker = worker
        self._settings = settings
        self._register = register
        self._lock_held = lock_held
        self._last = clock.now()
        self._woken = asyncio.Event()
        self._outage = OutageGuard("heartbeat")

    @property
    def unavailable(self) -> bool:
        """Whether the last heartbeat did not reach the database."""
        return self._outage.unavailable

    @property
    def silence(self) -> float:
        """Seconds since the last heartbeat."""
        return clock.now() - self._last

    def wake(self) -> None:
        """Send a heartbeat at once, to learn which runs must stop."""
        self._woken.set()

    async def run(self) -> None:
        """Send heartbeats until stopped, more often while the session lock is not held."""
        while not self.stop:
            woken = await self._pause(min(TICK, self._settings.heartbeat))
            due = clock.now() - self._last >= self._settings.heartbeat - TICK / 2
            if not self.stop and (woken or due or not self._lock_held()):
                await self._outage.guard(self.beat)

    async def beat(self) -> None:
        """Send a heartbeat; stop the runs that are lost, canceled or paused."""
        self._worker.end_leases()
        sent = clock.now()
        registered, states = await self._worker.claim.heartbeat(
            self._worker.leases(), draining=bool(self._worker.stop)
        )
        self._last = clock.now()
        renewed = {state.token for state in states if state.renewed}
        self._worker.renew_leases(renewed, sent + self._settings.lease)
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
            elif execution is not None and state.renewed:
                execution.beat()

    async def _pause(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken
