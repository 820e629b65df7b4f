"""A worker with many slots has two claim loops; replies on their way are not lost claims."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.service.claim import Claim
from draftsman.runtime import Runtime
from draftsman.worker.worker import TWO_LOOPS_MIN_SLOTS
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end


async def test_many_slots_are_all_filled(rt: Runtime, make: Factory) -> None:
    numbers = [await make.queued(queue="q") for _ in range(TWO_LOOPS_MIN_SLOTS + 5)]
    started = 0
    gate = asyncio.Event()

    async def handler(_: RunContext) -> Outcome:
        nonlocal started
        started += 1
        await gate.wait()
        return Done({})

    async with running_worker(
        runtime_with(rt), {"noop": handler}, slots=TWO_LOOPS_MIN_SLOTS + 1, queues=("q",)
    ) as process:

        async def full() -> bool:
            return started == TWO_LOOPS_MIN_SLOTS + 1

        await until(full, "a run in every slot")
        assert (
            len(process.worker.running) == len(process.worker.leases()) == TWO_LOOPS_MIN_SLOTS + 1
        )
        gate.set()
        for number in numbers:
            await wait_for_end(rt, number)
    assert started == len(numbers)


async def test_claims_in_flight_in_one_loop_are_not_released_by_another(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [await make.queued(queue="q") for _ in range(3)]
    executed = asyncio.Event()
    gate = asyncio.Event()
    exchange = Claim.exchange

    async def late(self: Claim, *args: Any, **more: Any) -> list[ClaimedJob]:
        claimed = await exchange(self, *args, **more)
        if claimed and not executed.is_set():
            executed.set()
            await gate.wait()
        return claimed

    async def noop(_: RunContext) -> Outcome:
        return Done({})

    monkeypatch.setattr(Claim, "exchange", late)
    async with running_worker(
        runtime_with(rt), {"noop": noop}, slots=TWO_LOOPS_MIN_SLOTS, queues=("q",)
    ) as process:
        await executed.wait()

        async def looking() -> bool:
            return process.worker.release_lock.locked()

        await until(looking, "the other loop to release lost claims")
        gate.set()
        runs = [(await wait_for_end(rt, number)).run_count for number in numbers]
    assert runs == [1, 1, 1], "a claim was released although its reply was only late"


async def test_a_run_that_was_locked_is_settled_with_the_runs_that_end_meanwhile(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [await make.queued(queue="q") for _ in range(6)]
    settled = list[int]()
    exchange = Claim.exchange

    async def beside_a_lock(self: Claim, done: Any, **more: Any) -> list[ClaimedJob]:
        settled.append(len(done))
        if len(settled) != 2:
            return await exchange(self, done, **more)
        async with conn.transaction():
            await conn.execute(
                "SELECT FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE",
                (done[0][0].job,),
            )
            return await exchange(self, done, **more)

    async def noop(_: RunContext) -> Outcome:
        return Done({})

    monkeypatch.setattr(Claim, "exchange", beside_a_lock)
    async with running_worker(runtime_with(rt), {"noop": noop}, slots=2, queues=("q",)):
        for number in numbers:
            await wait_for_end(rt, number)
    assert settled[:3] == [0, 2, 3]
