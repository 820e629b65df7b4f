"""A worker forgets its jobs: after hundreds of them it holds as many objects as before."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Collection

import pytest

from draftsman.errors import Failure
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.worker.execution import Execution
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.waits import until
from tests.core.worker.workers import before_deadline, running_worker, runtime_with

JOBS = 300
DEADLINE = 60.0
"""Maximum seconds of all jobs."""
FAILING = 20
TALKING = 10
"""Every twentieth job fails, and every tenth prints."""


async def handle(ctx: RunContext) -> Outcome:
    number = ctx.job.payload["n"]
    if number % FAILING == 1:
        raise Failure("for good", declared="PERMANENT")
    if number % TALKING == 2:
        ctx.log("a line")
        await ctx.checkpoint({"at": number})
    return Done({})


def held(process: WorkerProcess) -> dict[str, int]:
    """Return the sizes of all collections of a worker."""
    parts = vars(process) | vars(process.worker)
    return {name: len(part) for name, part in parts.items() if isinstance(part, Collection)}


async def test_no_object_of_a_job_stays_after_its_run(
    rt: Runtime, owner: Actor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "draftsman")  # captured logs keep the frames of errors
    earlier = objects()  # of other tests in this process, whose errors pytest may keep
    async with running_worker(runtime_with(rt), {"leak": handle}, slots=50) as process:
        before = held(process)
        requests = [invocation(type="leak", payload={"n": n}) for n in range(JOBS)]
        jobs = await rt.submissions.submit_many(requests, owner)

        async with asyncio.timeout(DEADLINE):
            for job in reversed(jobs):  # most jobs ended before the last
                await rt.read_model.wait(job.number)
        await until(lambda: _settled(process), "the settled jobs")
        await until(lambda: _forgotten(len(earlier)), "the end of the last run's objects")
        assert held(process) == before
    assert (await rt.read_model.stats()).jobs[Status.FAILED] == JOBS // FAILING


async def test_the_objects_of_a_run_are_freed_without_the_garbage_collector(
    rt: Runtime, owner: Actor
) -> None:
    contexts: list[weakref.ref[RunContext]] = []

    async def handle(ctx: RunContext) -> Outcome:
        contexts.append(weakref.ref(ctx))
        return Done({})

    gc.disable()
    try:
        async with running_worker(runtime_with(rt), {"leak": handle}) as process:
            job = await rt.submissions.submit(invocation(type="leak"), owner)
            await before_deadline(rt.read_model.wait(job.number))
            await until(lambda: _settled(process), "the settled job")
            assert [context() for context in contexts] == [None]
    finally:
        gc.enable()


async def _settled(process: WorkerProcess) -> bool:
    return not process.worker.leases()


async def _forgotten(earlier: int) -> bool:
    return len(objects()) == earlier


def objects() -> list[Execution | RunContext]:
    """Return the objects that belong to runs, in the whole process."""
    gc.collect()
    return [
        candidate for candidate in gc.get_objects() if isinstance(candidate, Execution | RunContext)
    ]
