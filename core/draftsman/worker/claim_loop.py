"""Claim loop: slots that claim and run jobs.

Each turn is a single statement, which settles finished runs and claims jobs. Batches form by
themselves: all runs that finish during a turn are settled in the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from functools import cached_property
from typing import Final

from draftsman.database.isolation import is_refusal
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.handlers.batches import Batch, BatchEntry, BatchHandler
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.jobs.runs.service.claim import CLAIMED
from draftsman.processes import clock
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman.worker.claim_cursor import ClaimCursor
from draftsman.worker.execution import Deadlines, Execution, WorkerServices
from draftsman.worker.run_metrics import LOST, WAITING

MAX_EXCHANGE: Final = 30.0
"""Seconds after which an exchange that is under way counts as failed."""
LOCKED_PAUSE: Final = 0.1
"""Seconds until a finished run is settled again whose job another transaction had locked."""
CLEANUP_TIMEOUT: Final = 30.0
"""Seconds in which the processes of a killed run must end and its clone be removed."""
_log = logging.getLogger(__name__)


class ClaimLoop:
    """Claims for its slots until stopped; `run` returns when every run is settled.

    Runs are identified by fencing token: a job may be claimed again while an older run of it, which
    lost the lease, is still ending. `release_lost_claims` is awaited before each turn, without an
    exchange under way. `more_jobs` is called when all free slots were filled: more may be waiting.
    """

    def __init__(
        self,
        *,
        services: WorkerServices,
        handlers: Mapping[str, Handler],
        slots: int,
        stop: StopSignal,
        release_lost_claims: Callable[[], Awaitable[None]],
        more_jobs: Callable[[], None],
    ) -> None:
        self.running: dict[int, Execution] = {}
        self.exchange_lock = asyncio.Lock()
        """Held during an exchange, while claims may be on their way."""
        self.may_have_lost_claims = False
        """Whether an outage may have lost claims since their last release."""
        self._slots = slots
        self._stop = stop
        self._release_lost_claims = release_lost_claims
        self._more_jobs = more_jobs
        self._services = services
        self._claim = services.claim
        self._settings = services.settings.worker
        self._handlers = handlers
        self._types = sorted(handlers)
        self._forming: dict[str, Batch] = {}
        """The batches that runs may still join, by type."""
        self._has_batches = any(isinstance(item, BatchHandler) for item in handlers.values())
        self._batches: set[Batch] = set()
        """The batches whose functions have not ended."""
        self._ahead: list[ClaimedJob] = []
        self._done: dict[int, Execution] = {}
        self.apart: dict[int, Execution] = {}
        """Runs whose end the database refused: each is settled on its own, without a slot."""
        self.lost: set[Lease] = set()
        """Leases that ended while their runs were not settled, until other workers have rescued the
        jobs."""
        self._cursors: defaultdict[tuple[str, ...], ClaimCursor] = defaultdict(ClaimCursor)
        """Where claims begin: those of jobs of all types, and those for batches of one."""
        self.settlements = 0
        """The ends of runs that claims have sent to the database."""
        self.skipped_settlements = 0
        """Those whose job another transaction had locked, or whose lease was lost."""
        self._asked_at = clock.now()
        """When the last claim was sent: the leases that it gave count from then."""
        self._exchanged_at = clock.now()
        self._wake = asyncio.Event()
        self.in_grace: dict[Lease, asyncio.Event] = {}
        """The parked runs that wait for an answer in a grace period; the events wake them."""
        self._outage = OutageGuard("worker")
        self._revival = OutageGuard("database restart")

    def wake(self) -> None:
        """Claim at once instead of at the next poll."""
        self._wake.set()
        self.wake_grace()

    def wake_grace(self) -> None:
        """Look for the answers that runs in a grace period wait for."""
        for event in self.in_grace.values():
            event.set()

    @property
    def free(self) -> int:
        """The number of free slots; a batch uses one, until its function has ended."""
        if not self._has_batches:
            return self._slots - len(self.running)
        alone = sum(execution.entry is None for execution in self.running.values())
        return self._slots - alone - len(self._batches)

    @property
    def silence(self) -> float:
        """Seconds since an exchange last succeeded, or there was nothing to exchange."""
        return clock.now() - self._exchanged_at

    @property
    def is_stalled(self) -> bool:
        """Whether the last exchange failed, or takes too long."""
        return self._outage.unavailable or self.silence > self._settings.poll + MAX_EXCHANGE

    def leases(self) -> list[Lease]:
        """Return the leases of active runs and of those that are not settled yet."""
        runs = (*self.running.items(), *self._ended_runs())
        return [execution.job.lease for _, execution in runs]

    def _ended_runs(self) -> list[tuple[int, Execution]]:
        """Return the runs that are not settled yet, by token."""
        return [*self._done.items(), *self.apart.items()]

    def ahead(self) -> list[Lease]:
        """Return the leases of jobs that were claimed ahead."""
        return [job.lease for job in self._ahead]

    def lose_run(self, token: int) -> bool:
        """End a run that lost its lease, or drop its result; False if it was ended before."""
        if (execution := self.running.get(token) or self.apart.get(token)) is not None:
            return execution.cancel("lost")
        if (done := self._done.pop(token, None)) is not None:
            done.count_end(LOST)
        return done is not None

    def renew_leases(self, tokens: Container[int], end: float) -> None:
        """Extend the leases of these runs until `end`, a time of `clock.now`."""
        for token, execution in (*self.running.items(), *self._ended_runs()):
            if token in tokens:
                execution.lease_end = end

    def end_leases(self, now: float, margin: float) -> list[str]:
        """Stop the runs whose leases end within `margin` seconds; return their names.

        Results that are not settled by the end of their leases are dropped.
        """
        ended = []
        for token, execution in [*self.running.items(), *self._ended_runs()]:
            if execution.holds_lease and execution.lease_end - margin <= now:
                self.lost.add(execution.job.lease)
                due = token in self.running or execution.lease_end <= now
                if due and self.lose_run(token):
                    ended.append(execution.name)
        return ended

    def outlived(self, now: float) -> list[str]:
        """Return the names of the runs whose handlers go on after the end of their leases."""
        return [
            execution.name
            for execution in self.running.values()
            if execution.lease_end <= now and execution.ignores_stop
        ]

    @property
    def lease_end(self) -> float:
        """The earliest end of a lease of a run, infinite without a run."""
        ends = [run.lease_end for run in self.running.values() if run.holds_lease]
        return min(ends, default=math.inf)

    async def run(self) -> None:
        """Claim and run until `stop`; then drain, abort the remaining runs, and release them."""
        while not self._stop:
            if await self._outage.guard(self._turn):
                self._exchanged_at = clock.now()
                await self._pause()
            else:
                self.may_have_lost_claims = True
                if self._services.revive is not None:
                    await self._revival.guard(self._services.revive)
                await self._stop.wait(self._settings.poll)
        await self._drain()

    async def _turn(self) -> None:
        """Settle and claim until nothing is left to do."""
        await self._release_lost_claims()
        while not self._stop:
            await self._start_ahead()
            await self._fill_batches()
            free = self.free
            ahead = max(0, self._settings.prefetch - len(self._ahead))
            if not (self._done or free or ahead):
                return
            claimed = await self._exchange(free, ahead)
            await self._fill_batches()
            if len(claimed) < max(1, free):
                return
            self._more_jobs()
            await asyncio.sleep(0)  # runs that end at once are settled together

    async def _fill_batches(self) -> None:
        """Claim further jobs for the batches that have room, and begin them."""
        for type, batch in list(self._forming.items()):
            try:
                if ahead := [job for job in self._ahead if job.type == type][: batch.room]:
                    await self._start_batch(ahead)
                if batch.room:
                    await self._exchange(batch.room, 0, [type])
            finally:
                if self._forming.get(type) is batch:
                    del self._forming[type]
                batch.close()

    async def _exchange(
        self, free: int, ahead: int, types: Sequence[str] | None = None
    ) -> list[ClaimedJob]:
        """Settle all finished runs and claim, jobs of all types or of these.

        Where a claim from the cursor finds too few jobs, another looks from the start.
        """
        types = types or self._types
        cursor = self._cursors[tuple(types)]
        claimed = await self._exchange_once(free, ahead, types, cursor)
        if not cursor.fell_short:
            return claimed
        running = sum(job.status is Status.RUNNING for job in claimed)
        waiting = sum(job.status is Status.CLAIMED for job in claimed)
        free = max(0, free - running)
        return claimed + await self._exchange_once(free, ahead - waiting, types, cursor)

    async def _exchange_once(
        self, free: int, ahead: int, types: Sequence[str], cursor: ClaimCursor
    ) -> list[ClaimedJob]:
        """Settle all finished runs and claim, in one statement.

        A batch that the database refuses, perhaps because of a single run, is settled run by run,
        apart from all others. Jobs whose claim it refuses are found one by one.
        """
        done = list(self._done.values())
        try:
            async with self.exchange_lock:
                claimed = await self._send(done, free, ahead, types, cursor)
                self._start_all(claimed)
                self._exchanged_at = clock.now()  # a turn may last as long as jobs are waiting
        except Exception as error:
            if isinstance(error, DraftsmanError) and error.is_outage:
                raise
            if not done:
                if not is_refusal(error):
                    raise
                return await self._claim_apart(free, ahead, types, error)
            self._settle_apart(done, error)
            self.may_have_lost_claims = True
            self._wake.set()
            return []
        return claimed

    async def _send(
        self,
        done: list[Execution],
        free: int,
        ahead: int,
        types: Sequence[str],
        cursor: ClaimCursor,
    ) -> list[ClaimedJob]:
        self._asked_at = clock.now()
        jobs = await self._claim.exchange(
            [(execution.job.lease, execution.result or {}) for execution in done],
            types=types,
            free=free,
            ahead=ahead,
            after=cursor.start(self._asked_at),
        )
        claimed = [job for job in jobs if job.status in CLAIMED]
        self.settlements += len(done)
        self.skipped_settlements += len(done) - (len(jobs) - len(claimed))
        cursor.move(claimed, free + ahead, clock.now())
        return jobs

    async def _claim_apart(
        self, free: int, ahead: int, types: Sequence[str], error: Exception
    ) -> list[ClaimedJob]:
        self.may_have_lost_claims = True
        async with self.exchange_lock:
            self._asked_at = clock.now()
            claimed = await self._claim.claim_apart(types, free, ahead, error)
            self._start_all(claimed)
        return claimed

    def _settle_apart(self, done: list[Execution], error: Exception) -> None:
        if len(done) > 1:
            _log.warning(
                "the database refused to settle %s runs together, settling each apart: %s",
                *(len(done), error),
            )
        for execution in done:
            self._done.pop(execution.job.token, None)
            self.apart[execution.job.token] = execution
            execution.settle_apart(self._settled_apart)

    def _leave_slot(self, execution: Execution) -> None:
        """Free the slot of a run whose end the database refuses."""
        if self.running.pop(execution.job.token, None) is not None:
            self.apart[execution.job.token] = execution
            self._wake.set()

    def _settled_apart(self, execution: Execution) -> None:
        self.apart.pop(execution.job.token, None)
        execution.count_end()
        self._wake.set()

    def _start_all(self, claimed: list[ClaimedJob]) -> None:
        """Start the running jobs before any await: an outage must not lose them."""
        for job in claimed:
            if job.status is Status.RUNNING:
                self._start(job)
            elif job.status is not Status.CLAIMED:
                if (settled := self._done.pop(job.token, None)) is not None:
                    settled.count_end(job.status)
            else:
                self._ahead.append(job)

    async def _start_ahead(self) -> None:
        """Start jobs that were claimed ahead in free slots.

        Where the database refuses to start them together, one that it refuses alone is released,
        like a claim whose reply was lost.
        """
        first = self._ahead[: max(0, self.free)]
        if not first:
            return
        try:
            await self._start_batch(first)
        except DraftsmanError as error:
            if error.is_outage:
                raise
            for job in first:
                await self._start_alone(job)

    async def _start_batch(self, jobs: list[ClaimedJob]) -> None:
        self._asked_at = clock.now()
        started = await self._claim.start([job.lease for job in jobs])
        self._ahead = [job for job in self._ahead if job not in jobs]
        for job in started:
            self._start(job)

    async def _start_alone(self, job: ClaimedJob) -> None:
        try:
            await self._start_batch([job])
        except DraftsmanError as error:
            if error.is_outage:
                raise
            _log.error("%s cannot be started, and is released: %s", job.name, error)
            self._ahead.remove(job)

    @cached_property
    def _deadlines(self) -> Deadlines:
        return Deadlines(asyncio.get_running_loop())

    def _start(self, job: ClaimedJob) -> None:
        handler = self._handlers[job.type]
        entry = self._enter_batch(job.type, handler) if isinstance(handler, BatchHandler) else None
        execution = Execution(
            services=self._services,
            job=job,
            handler=entry or handler,
            entry=entry,
            deadlines=self._deadlines,
            continue_in_grace=self._continue_in_grace,
        )
        execution.lease_end = self._asked_at + self._settings.lease
        self.running[job.token] = execution
        execution.count_start()
        execution.start(self._ended, self._leave_slot)

    def _enter_batch(self, type: str, handler: BatchHandler) -> BatchEntry:
        """Return a place in the batch of a type that is not full."""
        batch = self._forming.get(type)
        if batch is None or not batch.room:
            if batch is not None:
                batch.close()
            batch = self._forming[type] = handler.open(self._batch_ended)
            self._batches.add(batch)
        return batch.add()

    def _batch_ended(self, batch: Batch) -> None:
        self._batches.discard(batch)
        self._wake.set()

    async def _continue_in_grace(
        self, execution: Execution, seconds: float, on_poll: Callable[[], bool]
    ) -> ClaimedJob | None:
        """Wait until an answer has claimed the job for this worker, and start it in its slot."""
        end = time.monotonic() + seconds
        parked = execution.job
        waiting = True
        woken = self.in_grace[parked.lease] = asyncio.Event()
        try:
            while True:
                left = end - time.monotonic()
                ends = left <= 0 or not waiting or bool(self._stop)
                async with self.exchange_lock:  # else the claim would count as lost
                    asked_at = clock.now()
                    try:
                        waiting, job = await self._claim.continue_in_grace(parked.lease, ends=ends)
                    except DatabaseUnreachable:
                        job = None
                        self.may_have_lost_claims = True
                    if job is not None:
                        self.running[job.token] = self.running.pop(parked.token)
                        execution.count_end(WAITING)
                        execution.job = job
                        execution.count_start()
                        execution.lease_end = asked_at + self._settings.lease
                        return job
                if ends:
                    return None
                if not on_poll():
                    await self._claim.leave_grace(parked.lease)
                    return None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, self._settings.poll)):
                        await woken.wait()
                woken.clear()
        except asyncio.CancelledError:
            await asyncio.shield(self._claim.leave_grace(parked.lease))
            raise
        finally:
            self.in_grace.pop(parked.lease, None)

    def _ended(self, execution: Execution) -> None:
        if execution.entry is not None:
            execution.entry.leave()
        self.running.pop(execution.job.token, None)
        self.apart.pop(execution.job.token, None)
        if execution.result is not None:
            self._done[execution.job.token] = execution
        else:
            execution.count_end()
        self._wake.set()

    async def _pause(self) -> None:
        """Wait until this loop is woken, at most until the next poll."""
        poll = self._settings.poll
        await self._wait_for_wake(min(poll, LOCKED_PAUSE) if self._done else poll)

    async def _wait_for_wake(self, seconds: float) -> None:
        if not self._wake.is_set():  # the common case under load: no timer is needed
            timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                timer.cancel()
        self._wake.clear()

    async def _drain(self) -> None:
        """Stop claiming, wait for active runs, then abort the others at their checkpoints."""
        for batch in self._forming.values():
            batch.close()
        if self._ahead:
            leases = [job.lease for job in self._ahead]
            self._ahead = []
            for _ in range(2):  # the first connection may be cut
                if await self._outage.guard(lambda: self._claim.release_claims(leases, "shutdown")):
                    break
        if self.running:
            _log.info(
                "draining %s runs for at most %.0f s", len(self.running), self._settings.drain
            )
        await self._finish(self._settings.drain)
        for execution in list(self.running.values()):
            execution.cancel("shutdown")
        await self._finish(self._settings.abort)
        for execution in list(self.running.values()):
            execution.kill()
        await self._finish(self._settings.abort)
        if any(execution.ending for execution in self.running.values()):
            await self._finish(CLEANUP_TIMEOUT)
        for execution in list(self.running.values()):
            await execution.abandon()
        await self._leave_refused()

    async def _leave_refused(self) -> None:
        """Give up the runs whose end the database refuses: their jobs are rescued."""
        tasks = [execution.task for execution in self.apart.values() if execution.task is not None]
        for execution in list(self.apart.values()):
            execution.cancel("shutdown")
        if tasks:
            await asyncio.wait(tasks, timeout=self._settings.abort)

    async def _finish(self, seconds: float) -> None:
        """Settle runs as they finish, until none is left or the time is over."""
        end = time.monotonic() + seconds
        while self._is_ending:
            await self._outage.guard(self._settle_done)
            left = end - time.monotonic()
            if left <= 0 or not self._is_ending:
                return
            await self._wait_for_wake(min(left, self._settings.poll))

    @property
    def _is_ending(self) -> bool:
        """Whether a run is under way, or its end may still be stored at once."""
        return bool(self.running or self._done) or any(
            not execution.refused for execution in self.apart.values()
        )

    async def _settle_done(self) -> None:
        if self._done:
            await self._exchange(0, 0)
