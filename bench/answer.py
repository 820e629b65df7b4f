"""Latency from an answer to the resumed run, which only draftsman has."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import NamedTuple

from bench import checks
from bench.measure import GAP, WARM_SAMPLES, Run, percentiles
from bench.queue_process import Child
from bench.report import Figures
from bench.server import BenchError, session
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.runtime import Runtime, open_runtime
from draftsman.settings import settings_model

ME = Actor(Source.CLI, "bench", "bench", owner=True)


async def answer(run: Run) -> Figures:
    """Answer questions: the time from before the call to the start of the resumed run.

    Each answer is followed by the submission of a job; `pair` is the median ratio of the two times.
    `call_ms` and `claimed_ms` are medians from the same moment: to the return of the call, and to
    the event of the claim.
    """
    after = await run.newest()
    answers = list[Answer]()
    ratios = list[float]()
    async with asked(run) as (rt, worker, numbers):
        for number in numbers:
            answers.append(await _answered(rt, worker, number))
            ratios.append(answers[-1].started / await _started(rt, worker))
    await checks.answered(run.url, after, len(numbers))
    claims = await _claims(run.url, numbers)
    counted = list(zip(answers, claims, strict=True))[WARM_SAMPLES:]
    figures = percentiles([answer.started for answer, _ in counted])
    figures["call_ms"] = median(answer.returned for answer, _ in counted)
    figures["claimed_ms"] = median((claim - answer.at) * 1e3 for answer, claim in counted)
    return figures | {"pair": median(ratios[WARM_SAMPLES:])}


@asynccontextmanager
async def asked(run: Run) -> AsyncIterator[tuple[Runtime, Child, list[int]]]:
    """Let jobs ask a question each; yield a runtime, their worker and the numbers of the jobs."""
    settings = settings_model().model_validate({"database_url": run.url})
    async with open_runtime(settings) as rt, run.side.child("work", run.url) as worker:
        asking = [invocation(type="ask") for _ in range(WARM_SAMPLES + run.jobs)]
        numbers = [job.number for job in await rt.submissions.submit_many(asking, ME)]
        await worker.hear("ready")
        worker.say("go")
        await run.until_idle()
        yield rt, worker, numbers
        await run.until_idle()
        worker.say("stop")
        await worker.hear("end")


class Answer(NamedTuple):
    """An answer: when it was given (Unix time), and milliseconds from then."""

    at: float
    returned: float
    started: float


async def _answered(rt: Runtime, worker: Child, number: int) -> Answer:
    await asyncio.sleep(random.uniform(*GAP))
    response = Response(source_event_id=f"bench-{number}", text="red")
    at = time.time()
    began = time.monotonic_ns()
    await rt.questions.answer(number, 1, response, ME)
    returned = time.monotonic_ns()
    start = await worker.hear("start")
    if start["number"] != number:
        raise BenchError(f"D-{number} was answered, and D-{start['number']} went on")
    return Answer(at, (returned - began) / 1e6, (start["at"] - began) / 1e6)


async def _claims(url: str, numbers: list[int]) -> list[float]:
    """Return the Unix time of the last claim of each job, in the order of their numbers."""
    async with session(url) as database:
        times: list[float] = await database.value(
            """
            SELECT array_agg(at ORDER BY job)
              FROM (SELECT job, extract(epoch FROM max(created_at))::float8 AS at
                      FROM draftsman.events
                     WHERE job = ANY(%s) AND kind = 'job_claimed' GROUP BY job) claims
            """,
            numbers,
        )
    return times


async def _started(rt: Runtime, worker: Child) -> float:
    await asyncio.sleep(random.uniform(*GAP))
    began = time.monotonic_ns()
    await rt.submissions.submit(invocation(type="noop"), ME)
    start = await worker.hear("start")
    return float(start["at"] - began) / 1e6
