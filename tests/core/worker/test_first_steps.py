"""Runs begin with the claim, in its order; a long first step takes nothing from other runs.

Since Python 3.12, the first step of a handler is part of the turn of its claim loop.
"""

from __future__ import annotations

import asyncio
import time

from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import Runtime
from draftsman.worker.worker import TWO_LOOPS_MIN_SLOTS
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end
from tests.support.statements import value

LONG = 0.2
"""Seconds that a first step blocks the event loop."""
LEASE = 3.0


async def test_runs_begin_in_the_order_of_the_queue(rt: Runtime, make: Factory) -> None:
    types = ["quick", "long", "instant"] * 2
    numbers = [await make.queued(queue="q", type=type) for type in types]
    gate = asyncio.Event()
    begun = list[int]()

    async def quick(ctx: RunContext) -> Outcome:
        begun.append(ctx.job.number)
        await gate.wait()
        return Done({})

    async def long(ctx: RunContext) -> Outcome:
        time.sleep(LONG)  # noqa: ASYNC251 - it blocks the event loop on purpose
        return await quick(ctx)

    async def instant(ctx: RunContext) -> Outcome:
        begun.append(ctx.job.number)
        return Done({})

    handlers = {"quick": quick, "long": long, "instant": instant}
    async with running_worker(runtime_with(rt), handlers, slots=len(numbers), queues=("q",)):
        for number in numbers[2::3]:
            await wait_for_end(rt, number)
        assert begun == numbers
        gate.set()
        for number in numbers:
            assert (await wait_for_end(rt, number)).status is Status.COMPLETED


async def test_long_first_steps_let_leases_be_renewed_and_other_runs_begin(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    """Of two claim loops whose slots are all filled, with a long first step in each."""
    types = ["long", *["quick"] * (TWO_LOOPS_MIN_SLOTS - 2), "long"]
    numbers = [await make.queued(queue="q", type=type) for type in types]
    gate = asyncio.Event()
    begun = set[int]()

    async def quick(ctx: RunContext) -> Outcome:
        begun.add(ctx.job.number)
        await gate.wait()
        return Done({})

    async def long(ctx: RunContext) -> Outcome:
        time.sleep(LONG)  # noqa: ASYNC251 - it blocks the event loop on purpose
        return await quick(ctx)

    async def is_renewed() -> bool:
        renewed = "SELECT count(*) FROM draftsman.job_runs WHERE heartbeat_at > started_at"
        return int(await value(conn, renewed)) == len(numbers)

    async with running_worker(
        runtime_with(rt, lease=LEASE),
        {"quick": quick, "long": long},
        slots=TWO_LOOPS_MIN_SLOTS,
        queues=("q",),
    ) as process:
        await until(is_renewed, "a heartbeat of every run")
        assert begun == set(numbers)
        late = await make.queued(queue="q", type="long")
        gate.set()
        runs = [(await wait_for_end(rt, number)).run_count for number in (*numbers, late)]
        assert process.worker.running == {}
    assert runs == [1] * (len(numbers) + 1)
