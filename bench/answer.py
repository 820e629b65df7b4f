"""Latency from an answer to the resumed run, which only draftsman has."""

from __future__ import annotations

import asyncio
import random
import time
from statistics import median

from bench import checks
from bench.measure import GAP, WARM_SAMPLES, Run, percentiles
from bench.queue_process import Child
from bench.report import Figures
from bench.server import BenchError
from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.domain.response import Response
from draftsman.runtime import Runtime, open_runtime
from draftsman.services.jobs.submissions import invocation
from draftsman.settings import Settings

ME = Actor(Source.CLI, "bench", "bench", owner=True)


async def answer(run: Run) -> Figures:
    """Answer questions: the time from before the call to the start of the resumed run.

    Each answer is followed by the submission of a job; `pair` is the median ratio of the two times.
    """
    after, times, ratios = await run.newest(), list[float](), list[float]()
    settings = Settings.model_validate({"database_url": run.url})
    async with open_runtime(settings) as rt, run.side.child("work", run.url) as worker:
        asking = [invocation(type="ask") for _ in range(WARM_SAMPLES + run.jobs)]
        numbers = [job.number for job in await rt.submissions.submit_many(asking, ME)]
        await worker.hear("ready")
        worker.say("go")
        await run.until_idle()
        for number in numbers:
            times.append(await _answered(rt, worker, number))
            ratios.append(times[-1] / await _started(rt, worker))
        await run.until_idle()
        worker.say("stop")
        await worker.hear("end")
    await checks.answered(run.url, after, len(numbers))
    return percentiles(times[WARM_SAMPLES:]) | {"pair": median(ratios[WARM_SAMPLES:])}


async def _answered(rt: Runtime, worker: Child, number: int) -> float:
    await asyncio.sleep(random.uniform(*GAP))
    response = Response(source_event_id=f"bench-{number}", text="red")
    began = time.monotonic_ns()
    await rt.questions.answer(number, 1, response, ME)
    start = await worker.hear("start")
    if start["number"] != number:
        raise BenchError(f"D-{number} was answered, and D-{start['number']} went on")
    return float(start["at"] - began) / 1e6


async def _started(rt: Runtime, worker: Child) -> float:
    await asyncio.sleep(random.uniform(*GAP))
    began = time.monotonic_ns()
    await rt.submissions.submit(invocation(type="noop"), ME)
    start = await worker.hear("start")
    return float(start["at"] - began) / 1e6
