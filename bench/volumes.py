"""Claims beside many held jobs, and schedules that are due at the same time."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Final
from uuid import uuid4

from bench.measure import Run, ServerCosts
from bench.report import Figures
from bench.server import BenchError, session
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.service.claim import Claim
from draftsman.people.actor import Actor
from draftsman.people.configuration import configured_directory, configured_policy
from draftsman.runtime import Runtime, open_runtime
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.settings import settings_model

ME: Final = Actor(Source.CLI, "bench", "bench", owner=True)
PEOPLE: Final = {"bench": {"login": "bench", "roles": ["invoker"]}}
BATCH: Final = 1000
SLOTS: Final = 10
WARM: Final = 20
"""Claims that are not counted: the first of them plan the statement."""
OF_KEY: Final = 101
"""Jobs of each concurrency key: one may be claimed, the others are held."""
LEAD: Final = 10.0
"""Minimum seconds until the schedules are due, in which the worker becomes the leader."""
ONCE: Final = """
    SELECT (SELECT count(*) FROM draftsman.job_states WHERE status = 'completed') = %s
       AND (SELECT count(*) FROM draftsman.job_requests) = %s
       AND (SELECT count(*) FROM draftsman.schedule_fires WHERE status = 'fired') = %s
       AND (SELECT count(*) FROM draftsman.schedule_fires) = %s"""
"""Whether each schedule has one occurrence, which became one job."""


class Claimer:
    """A worker's claims in a database, each of which settles the runs of the claim before."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._claim = Claim(rt.db, uuid4(), ("default",))
        self._running: list[ClaimedJob] = []
        self.times: list[float] = []

    async def submit(self, jobs: int, keys: int) -> None:
        """Submit jobs to claim, and with a lower priority those of concurrency keys."""
        for first in range(0, keys * OF_KEY, BATCH):
            numbers = range(first, min(first + BATCH, keys * OF_KEY))
            requests = [
                invocation(type="noop", concurrency_key=f"key-{number % keys}", priority=-1)
                for number in numbers
            ]
            await self._rt.submissions.submit_many(requests, ME)
        for _ in range(0, jobs, BATCH):
            await self._rt.submissions.submit_many([invocation(type="noop")] * BATCH, ME)

    async def claim(self) -> None:
        """Settle and claim."""
        done = [(job.lease, dict[str, object]()) for job in self._running]
        began = time.perf_counter()
        jobs = await self._claim.exchange(done, types=["noop"], free=SLOTS, ahead=0)
        self.times.append((time.perf_counter() - began) * 1e3)
        self._running = [job for job in jobs if job.status is Status.RUNNING]
        if len(self._running) != SLOTS or len(jobs) != SLOTS + len(done):
            raise BenchError(f"{len(jobs)} jobs were claimed and settled")


async def held(run: Run) -> Figures:
    """Claim from a queue with many held jobs, and from a queue without, in alternation.

    A call settles ten runs and claims ten jobs, which are before the others of their queue.
    """
    calls = WARM + max(50, run.jobs // 40)
    keys = run.jobs // 10
    async with AsyncExitStack() as stack:
        bare = run.place.url(await stack.enter_async_context(run.place.database(run.side.name)))
        claimers = []
        for url, count in ((run.url, keys), (bare, 0)):
            settings = settings_model().model_validate({"database_url": url})
            claimer = Claimer(await stack.enter_async_context(open_runtime(settings)))
            await claimer.submit((calls + 1) * SLOTS, count)
            async with session(url) as fresh:
                await fresh.conn.execute("VACUUM ANALYZE")
            claimers.append(claimer)
        for _ in range(calls):
            for claimer in claimers:
                await claimer.claim()
        async with session(run.url) as database:
            held = await database.value(
                "SELECT count(*) FROM draftsman.job_states WHERE hold = 'key'"
            )
    beside, without = (median(claimer.times[WARM:]) for claimer in claimers)
    figures = {"held": held, "keys": keys, "p50_ms": beside, "bare_ms": without}
    return figures | {"ratio": beside / without}


async def schedules(run: Run) -> Figures:
    """Fire schedules that are due at the same minute by the leader of a worker.

    Raises BenchError unless each of them was fired once.
    """
    due = await _add(run, datetime.now(UTC) + timedelta(seconds=LEAD))
    async with run.side.child("work", run.url, run.preset, run.jobs) as worker:
        await worker.hear("ready")
        worker.say("go")
        await asyncio.sleep((due - datetime.now(UTC)).total_seconds() - 1)
        counted = await ServerCosts.start(run)
        await worker.hear("first")
        await worker.hear("counted")
        await run.until_idle()
        worker.say("stop")
        end = await worker.hear("end")
    costs = await counted.per_job(end["cpu"], run.jobs)
    async with session(run.url) as database:
        if not await database.value(ONCE, *[run.jobs] * 4):
            raise BenchError("not every schedule was fired once")
        seconds = await database.value(
            "SELECT ARRAY[(SELECT max(recorded_at) FROM draftsman.schedule_fires) - %s,"
            " (SELECT max(finished_at) FROM draftsman.job_states) - %s]",
            due,
            due,
        )
    fired, done = (elapsed.total_seconds() for elapsed in seconds)
    return {"schedules": run.jobs, "fired_s": fired, "done_s": done} | costs


async def _add(run: Run, after: datetime) -> datetime:
    """Add schedules that are due at the next full minute after a time; return that time."""
    due = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    values = {"database_url": run.url, "people": PEOPLE, "handlers": {"noop": "bench:noop"}}
    async with open_runtime(settings_model().model_validate(values)) as rt:
        directory = configured_directory(rt.settings)
        assert directory is not None
        await rt.people.save(directory)
        rt.policy.update_from(configured_policy(rt.settings, directory))
        rule = f"{due.minute} {due.hour} * * *"
        await rt.schedules.add(ScheduleSpec("bench", rule, request={"type": "noop"}), ME)
    async with session(run.url) as database:
        await database.conn.execute(
            "INSERT INTO draftsman.schedules (name, rule, timezone, request, created_by, due_at,"
            " fire_at) SELECT 'bench-' || g, rule, timezone, request, created_by, due_at, fire_at"
            " FROM draftsman.schedules, generate_series(2, %s) AS g",
            (run.jobs,),
        )
        await database.conn.execute("VACUUM ANALYZE")
    return due
