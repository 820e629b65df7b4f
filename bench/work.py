"""Running: how fast a full queue empties, and how soon an idle worker starts."""

from __future__ import annotations

import asyncio
import random
import time
from statistics import quantiles

from bench.jobs import ME, fill, request, services
from bench.place import Broken, Place, check_drained, session
from bench.report import Figures
from bench.worker import worker
from draftsman.domain.answer import Response

SLOTS = 10
WARM = 5
"""Samples that do not count: connections and prepared statements are made with them."""
GAP = (0.01, 0.05)
"""Seconds between two samples: the worker sleeps by then, at changing moments."""


async def drain(place: Place, kind: str, slots: int, jobs: int) -> Figures:
    """Let one worker empty a full queue: from the first start to the last completion.

    The WAL begins after a checkpoint, so it holds the full image of each page touched.
    """
    async with place.database() as name:
        async with services(place.url(name)) as rt:
            await fill(rt, jobs)
        async with session(place.url(name)) as fresh:
            await fresh.conn.execute("VACUUM ANALYZE")
            await fresh.conn.execute("CHECKPOINT")
        commits, wal = await place.commits(name), await place.written()
        async with worker(place.url(name), kind, slots, jobs) as process:
            process.say("go")
            await process.hear("counted")
            async with session(place.url(name)) as looking:
                await looking.until(
                    "SELECT NOT EXISTS (SELECT FROM draftsman.jobs WHERE finished_at IS NULL)",
                    f"{jobs} jobs to complete",
                )
            wal = await place.written() - wal
            process.say("stop")
            end = await process.hear("end")
        commits = await place.commits(name) - commits - looking.asked
        async with session(place.url(name)) as after:
            await check_drained(after, jobs)
            seconds = await after.value(
                "SELECT extract(epoch FROM max(created_at) - min(created_at))::float8"
                " FROM draftsman.job_events WHERE kind IN ('job_started', 'job_completed')"
            )
    return {
        "rate": jobs / seconds,
        "cpu_us": end["cpu"] / jobs * 1e6,
        "wal_bytes": wal / jobs,
        "commits": commits / jobs,
        "rss_mb": end["rss"],
    }


async def idle(place: Place, kind: str, samples: int) -> Figures:
    """Submit to an idle worker: from before the call to the start of the handler."""
    async with place.database() as name, services(place.url(name)) as rt:
        times = []
        async with worker(place.url(name), kind, SLOTS) as process:
            process.say("go")
            for _ in range(WARM + samples):
                await asyncio.sleep(random.uniform(*GAP))
                began = time.monotonic_ns()
                await rt.intake.submit(request("noop"), ME)
                times.append(((await process.hear("start"))["at"] - began) / 1e6)
            process.say("stop")
            await process.hear("end")
    return _percentiles(times[WARM:])


async def answer(place: Place, samples: int) -> Figures:
    """Answer a question: from before the call to the start of the run that goes on."""
    async with place.database() as name, services(place.url(name)) as rt:
        numbers, times = await fill(rt, WARM + samples, "ask"), []
        async with worker(place.url(name), "crew", SLOTS) as process:
            process.say("go")
            async with session(place.url(name)) as looking:
                await looking.until(
                    "SELECT NOT EXISTS (SELECT FROM draftsman.jobs"
                    " WHERE status <> 'waiting_for_input')",
                    "every job to ask",
                )
            for number in numbers:
                await asyncio.sleep(random.uniform(*GAP))
                response = Response(source_event_id=f"bench-{number}", text="red")
                began = time.monotonic_ns()
                await rt.questions.answer(number, 1, response, ME)
                told = await process.hear("start")
                if told["job"] != number:
                    raise Broken(f"D-{number} was answered, and D-{told['job']} went on")
                times.append((told["at"] - began) / 1e6)
            process.say("stop")
            await process.hear("end")
    return _percentiles(times[WARM:])


def _percentiles(times: list[float]) -> Figures:
    cuts = quantiles(times, n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}
