"""The leader: the worker that runs the sweeps.

Leases cannot exclude two leaders, so each sweep's statement proves the lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from draftsman.errors import DraftsmanError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import Sweep, in_due_order
from draftsman.log import LogEvent, keys
from draftsman.metrics import Counter, Totals
from draftsman.processes import clock
from draftsman.processes.lifecycle import OutageGuard, StopSignal
from draftsman.settings.workers import SweepSettings
from draftsman.worker.service.sweeps import Sweeps

# A scheduler whose intervals do not depend on the wall clock.


TOLERANCE: Final = 0.05
"""Seconds by which the clocks may differ: a wall clock that is corrected is never exact."""


class SteadyScheduler(AsyncIOScheduler):  # type: ignore[misc]
    """Runs jobs at intervals, also across steps of the wall clock, which APScheduler counts by.

    Its timer is monotonic. When it fires, and the wall clock has moved by another amount than the
    monotonic clock, the times of all jobs move along.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, timezone="UTC")
        self._intervals: dict[str, timedelta] = {}
        self._offset = _offset()

    def repeat(
        self, work: Any, id: str, seconds: float, *args: Any, first: float | None = None
    ) -> None:
        """Call `work` with these arguments every `seconds`; several late calls are one.

        The first call is after `first` seconds, or after an interval.
        """
        self._intervals[id] = timedelta(seconds=seconds)
        after = seconds if first is None else first
        self.add_job(
            work,
            "interval",
            args=args,
            seconds=seconds,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            id=id,
            next_run_time=datetime.now(UTC) + timedelta(seconds=after),
        )

    def wakeup(self) -> None:
        """Follow a step of the wall clock, then run the jobs that are due."""
        offset = _offset()
        step = offset - self._offset
        if abs(step) > TOLERANCE:
            self._offset = offset  # first: each change of a job calls this method
            self._move_jobs(timedelta(seconds=step))
        super().wakeup()

    def _move_jobs(self, step: timedelta) -> None:
        """Move the times of all jobs, none by more than its interval from now."""
        now = datetime.now(UTC)
        for job in self.get_jobs():
            if job.next_run_time is not None:
                latest = now + self._intervals[job.id]
                job.modify(next_run_time=min(job.next_run_time + step, latest))


def _offset() -> float:
    return time.time() - clock.now()


TICK: Final = 1.0
"""Maximum interval of checks for due work and dead local workers, in seconds."""
LEASE_SAFETY: Final = 0.8
"""Fraction of the lease after which a leader that cannot renew it resigns."""
SWEPT: Final = Totals(
    Counter(
        "sweep_rows_total",
        "Rows that the sweeps of this worker changed, as the leader: rescue has rescued jobs.",
        ("sweep",),
    )
)
SWEEP_FAILURES: Final = Totals(
    Counter("sweep_failures_total", "Failed sweeps of this worker, as the leader.", ("sweep",))
)
logging.getLogger("apscheduler").setLevel(logging.ERROR)
_log = logging.getLogger(__name__)


def first_runs(sweeps: Sequence[Sweep], interval: float) -> dict[str, float]:
    """Return after how many seconds a new leader first runs a sweep, by name, unless at its start.

    They are spread over the interval of the configuration, or a shorter one of their own: all at
    once would delay the jobs of the worker. What is due runs before that.
    """
    spread = [sweep for sweep in sweeps if not sweep.runs_at_start]
    return {
        sweep.name: min(interval, sweep.interval(interval)) * place / len(spread)
        for place, sweep in enumerate(spread, 1)
    }


class Leader:
    """Campaigns for the leader's lease, and runs the sweeps while it holds it."""

    def __init__(self, sweeps: Sweeps, settings: SweepSettings, owner: UUID) -> None:
        self.stop = StopSignal()
        self._sweeps = sweeps
        self._settings = settings
        self._owner = owner
        self._term: int | None = None
        self._outage = OutageGuard("leader")
        self.swept: dict[str, float] = {}
        """When each sweep last succeeded in this term, in Unix time; empty while not the leader."""

    @property
    def refused(self) -> dict[str, int]:
        """The number of rows that each sweep has set aside, as the database refuses them."""
        return self._sweeps.refused

    async def run(self) -> None:
        """Campaign and lead until stopped; then resign."""
        while not self.stop:
            await self._outage.guard(self._campaign)
            if self._term is not None:
                await self._lead(LeaderTerm(self._owner, self._term))
                self._term = None
            await self.stop.wait(min(TICK * 2, self._settings.lease / 2))

    async def _campaign(self) -> None:
        self._term = await self._sweeps.acquire(self._owner, self._settings.lease)

    async def _lead(self, term: LeaderTerm) -> None:
        _log.info("became leader, term %s", term.term, extra=keys(event=LogEvent.LEADER_STARTED))
        scheduler = SteadyScheduler()
        interval = self._settings.interval
        first = first_runs(self._sweeps.all, interval)
        for sweep in self._sweeps.all:
            scheduler.repeat(
                self._run_scheduled,
                sweep.name,
                sweep.interval(interval),
                sweep,
                term,
                first=first.get(sweep.name),
            )
        scheduler.start()
        loops = (self._keep_lease(term), self._sweep_when_due(term), self._sweep_at_start(term))
        tasks = {asyncio.create_task(loop) for loop in loops}
        try:
            finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.gather(*finished)
        finally:
            for task in tasks:
                task.cancel()
            scheduler.pause()
            # lets sweeps start that were just scheduled: canceled before, they would log an error
            await asyncio.gather(*tasks, return_exceptions=True)
            scheduler.shutdown(wait=False)
            self.swept.clear()
            await self._outage.guard(lambda: self._sweeps.resign(term))
            stopped = keys(event=LogEvent.LEADER_STOPPED)
            _log.info("no longer leader, term %s", term.term, extra=stopped)

    async def _keep_lease(self, term: LeaderTerm) -> None:
        """Renew after half of the lease; return when it is lost, doubtful, or on stop."""
        loop = asyncio.get_running_loop()
        renewed_at = loop.time()
        while not await self.stop.wait(self._settings.lease / 2):
            requested_at = loop.time()
            try:
                if not await self._sweeps.renew(term, self._settings.lease):
                    return
                renewed_at = requested_at
            except DraftsmanError as error:
                _log.warning("could not renew the lease: %s", error)
                if loop.time() - renewed_at > self._settings.lease * LEASE_SAFETY:
                    return

    async def _sweep_at_start(self, term: LeaderTerm) -> None:
        """Run the sweeps that no interval may delay, in order; the scheduler does the rest."""
        for sweep in self._sweeps.all:
            if sweep.runs_at_start:
                await self._sweep(sweep, term)
        await self.stop.wait(math.inf)

    async def _sweep_when_due(self, term: LeaderTerm) -> None:
        """Run sweeps as soon as something is due, or a local worker died."""
        after_deaths = [sweep for sweep in self._sweeps.all if sweep.follows_deaths]
        when_due = in_due_order(self._sweeps.all)
        while True:
            due = None
            try:
                if await self._sweeps.has_dead_local_workers():
                    for sweep in after_deaths:
                        await self._sweep(sweep, term)
                due = await self._sweeps.next_due()
                if due is not None and due <= 0:
                    for sweep in when_due:
                        await self._sweep(sweep, term)
            except DraftsmanError as error:
                _log.debug("the sweep timer is waiting for the database: %s", error)
            least = TICK if self._sweeps.refused else 0.1  # what is refused stays due
            await asyncio.sleep(TICK if due is None else min(TICK, max(least, due)))

    async def _run_scheduled(self, sweep: Sweep, term: LeaderTerm) -> None:
        """Run a sweep for the scheduler, which would log a cancellation as an error."""
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweep(sweep, term)

    async def _sweep(self, sweep: Sweep, term: LeaderTerm) -> None:
        try:
            changed = await sweep.run(term)
        except DraftsmanError as error:
            _log.warning("sweep %s failed: %s", sweep.name, error)
            SWEEP_FAILURES.add(sweep.name)
            return
        self.swept[sweep.name] = time.time()
        SWEPT.add(sweep.name, amount=changed)
        if changed:
            _log.info("sweep %s: %s rows", sweep.name, changed)
