"""Figures that every queue has; each function takes a single measurement in a database."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import quantiles
from typing import Any

from bench import checks
from bench.queue_process import Child, Contestant
from bench.report import Figures
from bench.resource_usage import ServerCpu, resident_mb
from bench.server import DEADLINE, BenchServer, session

WARM = 20
"""Calls that are not counted, since they open connections and prepare statements."""
WARM_SAMPLES = 5
NEVER = 10**9
"""Starts that a worker does not report."""
SLOWEST = 500
"""Jobs a second that a drain reaches at least, or it has failed."""
FILLED = 100_000
"""Jobs that are submitted with a command."""
CHECKED = 100_000
"""Jobs of which each is checked; of more, the totals are."""
SETTLE = 1.0
"""Seconds until a worker is idle."""
GAP = (0.01, 0.05)
"""Range of seconds between two samples, after which the worker is idle."""
SAMPLING = 5.0
"""Seconds after which the samples of a slow poller are sufficient."""


@dataclass(frozen=True, slots=True)
class Run:
    """A measurement: queue, database, settings and size."""

    place: BenchServer
    side: Contestant
    database: str
    preset: str
    jobs: int
    server: ServerCpu | None
    past: bool = False
    """Whether the database is used again, so that submitted jobs must be completed."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Settings of draftsman besides those of the preset: limits of jobs, persons who submit."""

    @property
    def url(self) -> str:
        """URL of the database."""
        return self.place.url(self.database)

    async def newest(self) -> int:
        """Return the number of draftsman's newest job, after which the checked jobs start."""
        return await checks.newest(self.url) if self.side.ours else 0

    async def check_drained(self, after: int) -> None:
        """Check that draftsman completed all jobs after that one; raises BenchError."""
        if self.side.ours:
            check = checks.drained if self.jobs <= CHECKED else checks.loaded
            await check(self.url, after, self.jobs)

    async def until_idle(self) -> int:
        """Wait until no job is left; return the number of queries that this took."""
        async with session(self.url) as looking:
            await looking.until(f"SELECT NOT ({self.side.about['unfinished']})", "all jobs to end")
            return looking.asked

    async def clear(self) -> None:
        """Complete jobs that were only submitted, without a measurement."""
        async with self.side.child("work", self.url, "fast", target=NEVER) as worker:
            await worker.hear("ready")
            worker.say("go")
            await worker.hear("first")
            await self.until_idle()
            worker.say("stop")
            await worker.hear("end")


@dataclass(frozen=True, slots=True)
class ServerCosts:
    """WAL and CPU of the server since the start of a measurement."""

    run: Run
    wal: int
    cpu: float

    @classmethod
    async def start(cls, run: Run) -> ServerCosts:
        """Start counting."""
        cpu = run.server.seconds() if run.server else 0.0
        return cls(run, await run.place.written(), cpu)

    async def per_job(self, cpu: float, jobs: int) -> Figures:
        """Return the costs of a job so far; `cpu` are the CPU seconds of the queue's process."""
        server = self.run.server.seconds() if self.run.server else None
        wal = await self.run.place.written() - self.wal
        figures = {"cpu_us": cpu / jobs * 1e6, "wal_bytes": wal / jobs}
        if server is not None:
            figures["server_us"] = (server - self.cpu) / jobs * 1e6
        return figures


async def submit(run: Run, tasks: int = 1) -> Figures:
    """Submit jobs individually, each call awaited before the next of its task."""
    after = await run.newest()
    async with run.side.child("produce", run.url, extra=run.extra) as producer:
        await producer.hear("ready")
        await producer.submit(0, WARM, many=False)
        done, costs = await _produced(run, producer, WARM, many=False, tasks=tasks)
    if run.side.ours:
        await checks.submitted(run.url, after, WARM + run.jobs)
    if run.past:
        await run.clear()
    figures = percentiles([nanoseconds / 1e6 for nanoseconds in done["times"]])
    return {"rate": run.jobs / (done["took"] / 1e9)} | figures | costs


async def batches(run: Run) -> Figures:
    """Submit in batches of a thousand."""
    after = await run.newest()
    async with run.side.child("produce", run.url) as producer:
        await producer.hear("ready")
        await producer.submit(0, 1, many=True)
        done, costs = await _produced(run, producer, 1, many=True)
    if run.side.ours:
        await checks.submitted(run.url, after, 1 + run.jobs)
    if run.past:
        await run.clear()
    return {"rate": run.jobs / (done["took"] / 1e9)} | costs


async def _produced(
    run: Run, producer: Child, first: int, *, many: bool, tasks: int = 1
) -> tuple[dict[str, Any], Figures]:
    """Submit the jobs of a measurement; return the report of the producer and the costs."""
    await run.place.checkpoint()
    counted = await ServerCosts.start(run)
    done = await producer.submit(first, run.jobs, many=many, tasks=tasks)
    return done, await counted.per_job(done["cpu"], run.jobs)


async def drain(run: Run) -> Figures:
    """Drain a full queue with a single worker: from the first start to the last completion."""
    figures, _ = await timed_drain(run)
    return figures


async def timed_drain(
    run: Run, beside: AbstractAsyncContextManager[None] | None = None
) -> tuple[Figures, list[float]]:
    """Drain a full queue with a single worker; return the figures, and the seconds of each tenth.

    The WAL starts at a checkpoint, so it has the full image of each changed page, as for
    submissions. The WAL, the server's CPU and the commits are counted from the command to start,
    or from the start of the worker. `beside` is entered when the queue is full, and left when it
    is empty.
    """
    place = run.place
    jobs = run.jobs
    after = await fill(run)
    commits = await place.commits(run.database)
    async with (
        beside or nullcontext(),
        run.side.child("work", run.url, run.preset, jobs, extra=run.extra) as worker,
    ):
        await worker.hear("ready")
        counted = await ServerCosts.start(run)
        worker.say("go")
        first = await worker.hear("first")
        await worker.hear("counted", DEADLINE + jobs / SLOWEST)
        queries = await run.until_idle()
        seconds = (time.monotonic_ns() - first["at"]) / 1e9
        costs = await counted.per_job(0.0, jobs)
        resident = resident_mb(worker.pid)
        worker.say("stop")
        end = await worker.hear("end")
    commits = await place.commits(run.database) - commits - queries
    await run.check_drained(after)
    figures = {"rate": jobs / seconds, "commits": commits / jobs, "rss_mb": resident}
    times = [first["at"], *end.get("tenths", ())]
    tenths = [(until - since) / 1e9 for since, until in pairwise(times)]
    return figures | costs | {"cpu_us": end["cpu"] / jobs * 1e6}, tenths


async def fill(run: Run) -> int:
    """Queue the jobs of a drain, vacuum and write a checkpoint; return the job before them."""
    after = await run.newest()
    await run.until_idle()
    async with run.side.child("produce", run.url, extra=run.extra) as producer:
        await producer.hear("ready")
        for first in range(0, run.jobs, FILLED):
            await producer.submit(first, min(FILLED, run.jobs - first), many=True)
    async with session(run.url) as fresh:
        await fresh.conn.execute("VACUUM ANALYZE")
    await run.place.checkpoint()
    return after


async def idle(run: Run) -> Figures:
    """Submit to an idle worker: from before the call to the start of the handler."""
    after = await run.newest()
    times = list[float]()
    async with (
        run.side.child("produce", run.url) as producer,
        run.side.child("work", run.url, run.preset) as worker,
    ):
        await producer.hear("ready")
        await worker.hear("ready")
        worker.say("go")
        await asyncio.sleep(SETTLE)
        deadline = time.monotonic() + SAMPLING
        for number in range(WARM_SAMPLES + run.jobs):
            await asyncio.sleep(random.uniform(*GAP))
            producer.say({"first": number, "jobs": 1, "many": False})
            start = await worker.hear("start")
            done = await producer.hear("done")
            times.append((start["at"] - done["began"]) / 1e6)
            if time.monotonic() > deadline and len(times) > WARM_SAMPLES + 2:
                break
        await run.until_idle()
        worker.say("stop")
        await worker.hear("end")
    if run.side.ours:
        await checks.drained(run.url, after, len(times))
    return percentiles(times[WARM_SAMPLES:])


def percentiles(times: list[float]) -> Figures:
    """Return the median and the 99th percentile of times in milliseconds."""
    cuts = quantiles(times, n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}
