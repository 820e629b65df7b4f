"""Grace periods: an answer within the period claims the job for the worker that keeps the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from draftsman.domain.job import Status
from draftsman.domain.run import ClaimedJob
from draftsman.runtime import Runtime
from draftsman.services.runs.claim import Claim
from draftsman.store.postgres.database import Connection
from tests.factories import QUESTION, Factory
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.statements import run, value

PERIODS = "SELECT count(*)::int FROM draftsman.grace_periods"


async def kept(
    rt: Runtime, make: Factory, session: Runtime | None = None
) -> tuple[ClaimedJob, Claim]:
    """Ask in a grace period of a minute; return the parked job and the claims of its worker."""
    worker = await make.worker_row()
    work = await make.running(worker=worker, queue="work")
    await rt.questions.ask(work.lease, QUESTION, grace=60)
    return work, (session or rt).claim(worker, ["default"])


async def status(rt: Runtime, work: ClaimedJob) -> Status:
    return (await rt.read_model.job(work.number)).status


async def test_an_answer_claims_the_job_for_the_worker_that_waits(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work, claim = await kept(rt, make)
    assert await claim.continue_in_grace(work.number, ends=False) == (True, None)
    assert (await make.answer(work.number, "red")).accepted
    waiting, job = await claim.continue_in_grace(work.number, ends=False)
    assert not waiting
    assert job is not None
    assert (job.run, job.status) == (2, Status.RUNNING)
    assert job.token > work.token
    assert await value(conn, PERIODS) == 0
    await rt.questions.ask(job.lease, QUESTION.model_copy(update={"key": "b"}))  # it has the lease
    assert await status(rt, work) is Status.WAITING_FOR_INPUT


async def test_the_end_of_the_period_waits_for_an_answer_under_way(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work, claim = await kept(rt, make)
    answering = Factory(first.rt, make.owner)
    async with first.doing(answering.answer(work.number, "red")):
        _, job = await first.then(claim.continue_in_grace(work.number, ends=True), conn)
    assert job is not None
    assert job.run == 2


async def test_an_answer_after_the_end_leaves_the_job_to_any_worker(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work, claim = await kept(rt, make, first.rt)
    async with first.doing(claim.leave_grace(work.number)):
        verdict = await first.then(make.answer(work.number, "red"), conn)
    assert verdict.job_status is Status.RESUMED
    assert await status(rt, work) is Status.RESUMED


async def test_a_claim_whose_agent_has_ended_goes_back(make: Factory, rt: Runtime) -> None:
    work, claim = await kept(rt, make)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.CLAIMED
    await claim.leave_grace(work.number)
    assert await status(rt, work) is Status.RESUMED


async def test_an_answer_at_the_end_of_the_period_is_late(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work, _ = await kept(rt, make)
    await clock.forward(61)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.RESUMED


async def pause(rt: Runtime, conn: Connection, make: Factory) -> None:
    await rt.queues.pause("work", make.owner, "repair")


async def drain(rt: Runtime, conn: Connection, make: Factory) -> None:
    await run(conn, "UPDATE draftsman.workers SET draining = true")


async def remove(rt: Runtime, conn: Connection, make: Factory) -> None:
    await run(conn, "DELETE FROM draftsman.workers")


@pytest.mark.parametrize("prepare", [pause, drain, remove])
async def test_a_job_that_no_worker_or_not_this_worker_may_claim_is_not_claimed(
    make: Factory,
    rt: Runtime,
    conn: Connection,
    prepare: Callable[[Runtime, Connection, Factory], Awaitable[None]],
) -> None:
    work, claim = await kept(rt, make)
    await prepare(rt, conn, make)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.RESUMED
    assert await claim.continue_in_grace(work.number, ends=False) == (False, None)
