"""The worker: all its slots, in one lane or two."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from draftsman.domain.run import Lease
from draftsman.handlers.registry import Handler
from draftsman.loops.claim_loop import ClaimLoop
from draftsman.loops.execution import Execution, WorkerServices
from draftsman.loops.lifecycle import StopSignal

TWO_LOOPS_MIN_SLOTS: Final = 32
"""Slots from which a worker has two lanes: while the database settles and claims for the one, the
handlers of the other run (measured: 1.3 times the jobs a second). With fewer, the second lane would
only make small statements out of large ones."""
_log = logging.getLogger(__name__)


class Worker:
    """Claims for its free slots until it is stopped; `run` returns when everything is settled."""

    def __init__(self, bench: WorkerServices, handlers: Mapping[str, Handler], slots: int) -> None:
        self.slots = slots
        self.types = sorted(handlers)
        self.claim = bench.claim
        self.stop = StopSignal()
        self._beat = bench.settings.worker.heartbeat
        self._looked = time.monotonic()
        self.recovery_lock = asyncio.Lock()
        """Held while lost claims are looked for."""
        half = slots // 2 if slots >= TWO_LOOPS_MIN_SLOTS else 0
        self._lanes = [
            ClaimLoop(
                replace(bench, claim=claim), handlers, share, self.stop, self._look, self.wake
            )
            for claim, share in (
                (bench.claim, slots - half),
                (bench.claim.with_own_session(), half),
            )
            if share
        ]

    @property
    def running(self) -> dict[int, Execution]:
        """Every run, by its fencing token."""
        return {token: one for lane in self._lanes for token, one in lane.running.items()}

    def names(self) -> str:
        """Return which runs are in hand, for the log."""
        jobs = [execution.job for execution in self.running.values()]
        return ", ".join(f"{job.name} run {job.run}" for job in jobs)

    def wake(self) -> None:
        """Look at once instead of at the next poll."""
        for lane in self._lanes:
            lane.wake()

    def wake_one(self) -> None:
        """Look for a job that came in: one lane does, and wakes the other if its slots fill."""
        max(self._lanes, key=lambda lane: lane.free).wake()

    def leases(self) -> list[Lease]:
        """Return what runs here, or ran and is not settled yet."""
        return [lease for lane in self._lanes for lease in lane.leases()]

    def runs(self, number: str) -> bool:
        """Return whether a job of this number runs here; a text that is no number does not."""
        return any(str(execution.job.number) == number for execution in self.running.values())

    def lose_run(self, token: int) -> None:
        """End a run that lost its job, and forget its result."""
        for lane in self._lanes:
            lane.lose_run(token)

    async def run(self) -> None:
        """Claim and run until `stop`; then drain, abort what is left, and hand it back."""
        await asyncio.gather(*(lane.run() for lane in self._lanes))

    async def _look(self) -> None:
        """Return claims whose reply was lost: after an outage, and now and then.

        No lane may have claims on their way meanwhile: they would go back as unheard of.
        """
        late = time.monotonic() - self._looked > self._beat
        if not (late or any(lane.may_have_lost_claims for lane in self._lanes)):
            return
        async with self.recovery_lock, AsyncExitStack() as quiet:
            for lane in self._lanes:
                await quiet.enter_async_context(lane.exchange_lock)
            held = self.leases() + [lease for lane in self._lanes for lease in lane.ahead()]
            if returned := await self.claim.release_lost_claims(held):
                _log.warning("%s claims were not heard of and went back", returned)
            self._looked = time.monotonic()
            for lane in self._lanes:
                lane.may_have_lost_claims = False
