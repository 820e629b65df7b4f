"""A worker: all its slots, with one or two claim loops."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Container, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from draftsman.errors import DraftsmanError
from draftsman.handlers.registry import Handler
from draftsman.jobs.runs.run import Lease
from draftsman.processes import clock
from draftsman.processes.lifecycle import StopSignal
from draftsman.worker.claim_loop import ClaimLoop
from draftsman.worker.execution import Execution, WorkerServices

TWO_LOOPS_MIN_SLOTS: Final = 32
"""Minimum slots for two claim loops: while the database serves the first, the handlers of the
second run (measured: 1.3 times the jobs a second). With fewer slots, a second loop would only split
large statements into small ones."""
_log = logging.getLogger(__name__)


class Worker:
    """Claims and runs jobs until it is stopped; `run` returns when every run is settled."""

    def __init__(
        self, services: WorkerServices, handlers: Mapping[str, Handler], slots: int
    ) -> None:
        self.slots = slots
        self.threads = services.thread_limit
        self.types = sorted(handlers)
        self.claim = services.claim
        self.stop = StopSignal(self.wake)
        self._heartbeat_interval = services.settings.worker.heartbeat
        self._stop_margin = services.settings.worker.lease - services.settings.worker.stop_after
        self._released_at = time.monotonic()
        self._release_failed = False
        self.release_lock = asyncio.Lock()
        """Held while claims whose reply was lost are released."""
        half = slots // 2 if slots >= TWO_LOOPS_MIN_SLOTS else 0
        self._claim_loops = [
            ClaimLoop(
                services=replace(services, claim=claim),
                handlers=handlers,
                slots=share,
                stop=self.stop,
                release_lost_claims=self._release_lost_claims,
                more_jobs=self.wake,
            )
            for claim, share in (
                (services.claim, slots - half),
                (services.claim.with_own_session(), half),
            )
            if share
        ]

    @property
    def running(self) -> dict[int, Execution]:
        """The active runs by fencing token."""
        return {
            token: execution
            for claim_loop in self._claim_loops
            for token, execution in claim_loop.running.items()
        }

    @property
    def unsettled(self) -> int:
        """The number of runs whose end the database refuses."""
        return sum(len(claim_loop.apart) for claim_loop in self._claim_loops)

    @property
    def settlements(self) -> int:
        """The number of ends of runs that claims have sent to the database."""
        return sum(claim_loop.settlements for claim_loop in self._claim_loops)

    @property
    def skipped_settlements(self) -> int:
        """The number of them that the database did not settle at once."""
        return sum(claim_loop.skipped_settlements for claim_loop in self._claim_loops)

    @property
    def silence(self) -> float:
        """Seconds since the last successful exchange, of the loop for which that is longest."""
        return max(claim_loop.silence for claim_loop in self._claim_loops)

    @property
    def is_stalled(self) -> bool:
        """Whether a claim loop neither settles nor claims."""
        return any(claim_loop.is_stalled for claim_loop in self._claim_loops)

    def names(self) -> str:
        """Return the names of the active runs, for the log."""
        return ", ".join(execution.name for execution in self.running.values())

    def wake(self) -> None:
        """Claim at once instead of at the next poll."""
        for claim_loop in self._claim_loops:
            claim_loop.wake()

    def wake_one(self) -> None:
        """Wake the claim loop with the most free slots; it wakes the other when they fill."""
        max(self._claim_loops, key=lambda claim_loop: claim_loop.free).wake()
        for claim_loop in self._claim_loops:
            claim_loop.wake_grace()

    def leases(self) -> list[Lease]:
        """Return the leases of active runs and of those that are not settled yet."""
        return [lease for claim_loop in self._claim_loops for lease in claim_loop.leases()]

    def runs(self, number: str) -> bool:
        """Return whether the job with this number, as text, runs here."""
        return any(str(execution.job.number) == number for execution in self.running.values())

    def lose_run(self, token: int) -> None:
        """End a run that lost its lease, and drop its result."""
        for claim_loop in self._claim_loops:
            claim_loop.lose_run(token)

    def renew_leases(self, tokens: Container[int], end: float) -> None:
        """Extend the leases of these runs until `end`, a time of `clock.now`."""
        for claim_loop in self._claim_loops:
            claim_loop.renew_leases(tokens, end)

    def end_leases(self) -> None:
        """Stop the runs whose leases are about to end, and drop the results of ended leases."""
        now = clock.now()
        ended = list[str]()
        for claim_loop in self._claim_loops:
            ended += claim_loop.end_leases(now, self._stop_margin)
        if ended:
            _log.warning("no heartbeat was confirmed for a lease: stopping %s", ", ".join(ended))

    def outlived(self, now: float) -> list[str]:
        """Return the names of the runs whose handlers go on after the end of their leases."""
        return [name for claim_loop in self._claim_loops for name in claim_loop.outlived(now)]

    def lease_left(self) -> float:
        """Return the seconds until the first lease of a run ends, infinite without a run."""
        return min(claim_loop.lease_end for claim_loop in self._claim_loops) - clock.now()

    async def run(self) -> None:
        """Claim and run until `stop`; then drain, abort the remaining runs, and release them."""
        await asyncio.gather(*(claim_loop.run() for claim_loop in self._claim_loops))

    async def _release_lost_claims(self) -> None:
        """Release claims whose reply was lost, after an outage and at intervals.

        Runs that were begun and then lost are left to the rescue, which follows their `on_lost`.
        No claim loop may have an exchange under way: its claims would be released too.
        """
        is_due = time.monotonic() - self._released_at > self._heartbeat_interval
        if not (is_due or any(claim_loop.may_have_lost_claims for claim_loop in self._claim_loops)):
            return
        async with self.release_lock, AsyncExitStack() as locks:
            for claim_loop in self._claim_loops:
                await locks.enter_async_context(claim_loop.exchange_lock)
            leases = self.leases() + [
                lease
                for claim_loop in self._claim_loops
                for lease in (*claim_loop.ahead(), *claim_loop.lost)
            ]
            in_grace = [lease for claim_loop in self._claim_loops for lease in claim_loop.in_grace]
            await self._release(leases, in_grace)
            self._released_at = time.monotonic()
            for claim_loop in self._claim_loops:
                claim_loop.may_have_lost_claims = False

    async def _release(self, leases: list[Lease], in_grace: list[Lease]) -> None:
        """Release lost claims; only an outage keeps the worker from its other work."""
        try:
            count = await self.claim.release_lost_claims(leases, in_grace)
            await self._forget_rescued()
        except DraftsmanError as error:
            if error.is_outage:
                raise
            if not self._release_failed:
                _log.error("claims whose reply was lost are not released, retrying: %s", error)
            self._release_failed = True
            return
        self._release_failed = False
        if count:
            _log.warning("released %s claims whose reply was lost", count)

    async def _forget_rescued(self) -> None:
        """Forget the lost leases of jobs that were rescued."""
        for claim_loop in self._claim_loops:
            if lost := [*claim_loop.lost]:
                held = await self.claim.held(lost)
                claim_loop.lost -= {lease for lease in lost if lease.token not in held}
