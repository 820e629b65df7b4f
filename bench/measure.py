"""The figures that every queue has; each function measures once, in one database."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from statistics import quantiles

from bench import checks
from bench.queue_process import Contestant
from bench.report import Figures
from bench.resource_usage import ServerCpu, resident_mb
from bench.server import BenchServer, session

WARM = 20
"""Calls that do not count: connections and prepared statements are made with them."""
WARM_SAMPLES = 5
NEVER = 10**9
"""Starts of which a worker does not have to tell."""
SETTLE = 1.0
"""Seconds for a worker to fall asleep."""
GAP = (0.01, 0.05)
"""Seconds between two samples: the worker sleeps by then, at changing moments."""
SAMPLING = 5.0
"""Seconds after which the samples of a slow poller are enough."""


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement: of whom, where, with which settings, and how large."""

    place: BenchServer
    side: Contestant
    database: str
    preset: str
    jobs: int
    server: ServerCpu | None
    past: bool = False
    """Is the database used again? What is submitted has to be done then."""

    @property
    def url(self) -> str:
        """Return the URL of its database."""
        return self.place.url(self.database)

    async def newest(self) -> int:
        """Return the number of draftsman's newest job; what is checked comes after it."""
        return await checks.newest(self.url) if self.side.ours else 0

    async def until_idle(self) -> int:
        """Return when no job is left to be done, with the number of queries that took."""
        async with session(self.url) as looking:
            await looking.until(f"SELECT NOT ({self.side.about['unfinished']})", "all jobs to end")
            return looking.asked

    async def clear(self) -> None:
        """Do what was only submitted, without a measurement."""
        async with self.side.child("work", self.url, "fast", target=NEVER) as worker:
            await worker.hear("ready")
            worker.say("go")
            await worker.hear("first")
            await self.until_idle()
            worker.say("stop")
            await worker.hear("end")


async def submit(run: Run) -> Figures:
    """Submit one by one, each call awaited before the next."""
    after = await run.newest()
    async with run.side.child("produce", run.url) as producer:
        await producer.hear("ready")
        await producer.submit(0, WARM, many=False)
        done = await producer.submit(WARM, run.jobs, many=False)
    if run.side.ours:
        await checks.submitted(run.url, after, WARM + run.jobs)
    if run.past:
        await run.clear()
    figures = percentiles([nanoseconds / 1e6 for nanoseconds in done["times"]])
    return {"rate": run.jobs / (done["took"] / 1e9)} | figures


async def batches(run: Run) -> Figures:
    """Submit in batches of a thousand."""
    after = await run.newest()
    async with run.side.child("produce", run.url) as producer:
        await producer.hear("ready")
        await producer.submit(0, 1, many=True)
        done = await producer.submit(1, run.jobs, many=True)
    if run.side.ours:
        await checks.submitted(run.url, after, 1 + run.jobs)
    if run.past:
        await run.clear()
    return {"rate": run.jobs / (done["took"] / 1e9)}


async def drain(run: Run) -> Figures:
    """Let one worker empty a full queue: from the first start to the last completion.

    The WAL begins after a checkpoint, so it holds the full image of each page touched. It, the
    server's CPU and the commits are those since the worker was told to go, or was started.
    """
    place, side, jobs = run.place, run.side, run.jobs
    after = await run.newest()
    await run.until_idle()
    async with side.child("produce", run.url) as producer:
        await producer.hear("ready")
        await producer.submit(0, jobs, many=True)
    async with session(run.url) as fresh:
        await fresh.conn.execute("VACUUM ANALYZE")
        await fresh.conn.execute("CHECKPOINT")
    commits = await place.commits(run.database)
    async with side.child("work", run.url, run.preset, jobs) as worker:
        await worker.hear("ready")
        wal, cpu = await place.written(), run.server.seconds() if run.server else 0.0
        worker.say("go")
        first = await worker.hear("first")
        await worker.hear("counted")
        asked = await run.until_idle()
        seconds = (time.monotonic_ns() - first["at"]) / 1e9
        wal = await place.written() - wal
        cpu = run.server.seconds() - cpu if run.server else 0.0
        resident = resident_mb(worker.pid)
        worker.say("stop")
        end = await worker.hear("end")
    commits = await place.commits(run.database) - commits - asked
    if side.ours:
        await checks.drained(run.url, after, jobs)
    figures = {
        "rate": jobs / seconds,
        "cpu_us": end["cpu"] / jobs * 1e6,
        "wal_bytes": wal / jobs,
        "commits": commits / jobs,
        "rss_mb": resident,
    }
    return figures | {"server_us": cpu / jobs * 1e6} if run.server else figures


async def idle(run: Run) -> Figures:
    """Submit to an idle worker: from before the call to the start of the handler."""
    after, times = await run.newest(), list[float]()
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
            start, done = await worker.hear("start"), await producer.hear("done")
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
