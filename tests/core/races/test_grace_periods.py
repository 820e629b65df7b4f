"""Grace periods: an answer within the period claims the job for the worker that keeps the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from draftsman.costs.budgets import CallEstimate
from draftsman.costs.service import BudgetSweep
from draftsman.database.database import Connection
from draftsman.ids import new_id
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.service.claim import Claim
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from tests.support.budgets import set_budgets
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.statements import run, value

PERIODS = "SELECT count(*)::int FROM draftsman.grace_periods"


LOCK = "1146242644, (SELECT lock_id FROM draftsman.workers)"
"""The session lock of the only worker."""


@pytest.fixture(autouse=True)
async def _within_a_day(clock: Clock) -> None:
    """Begin after an hour: the budgets are those of a day."""
    await clock.past_the_hour()


async def kept(
    rt: Runtime,
    make: Factory,
    conn: Connection,
    session: Runtime | None = None,
    in_flight: UUID | None = None,
) -> tuple[ClaimedJob, Claim]:
    """Ask in a grace period of a minute; return the parked job and the claims of its worker.

    `conn` has the session lock of the worker, which lives; `in_flight` is a call of its agent.
    """
    worker = await make.worker_row()
    await run(conn, f"SELECT pg_advisory_lock({LOCK})")
    work = await make.running(worker=worker, queue="work")
    if in_flight is not None:
        assert (await rt.model_calls.reserve(work.lease, in_flight, call(6))).outcome == "reserved"
    await rt.asking.ask(work.lease, QUESTION, grace=60)
    return work, (session or rt).claim(worker, ["default"])


async def status(rt: Runtime, work: ClaimedJob) -> Status:
    return (await rt.read_model.job(work.number)).status


async def test_an_answer_claims_the_job_for_the_worker_that_waits(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work, claim = await kept(rt, make, conn)
    assert await claim.continue_in_grace(work.lease, ends=False) == (True, None)
    assert (await make.answer(work.number, "red")).accepted
    waiting, job = await claim.continue_in_grace(work.lease, ends=False)
    assert not waiting
    assert job is not None
    assert (job.run, job.status) == (2, Status.RUNNING)
    assert job.token > work.token
    assert await value(conn, PERIODS) == 0
    await rt.asking.ask(job.lease, QUESTION.model_copy(update={"key": "b"}))  # it has the lease
    assert await status(rt, work) is Status.WAITING_FOR_INPUT


async def test_only_the_job_of_the_parked_run_is_looked_up(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    """Another parked run of the worker has the same number."""
    waiting, claim = await kept(rt, make, conn)
    answered = await make.running(worker=claim._worker, queue="work")
    await rt.asking.ask(answered.lease, QUESTION, grace=60)
    assert (await make.answer(answered.number, "red")).accepted
    assert await claim.continue_in_grace(waiting.lease, ends=False) == (True, None)
    _, job = await claim.continue_in_grace(answered.lease, ends=False)
    assert job is not None
    assert job.number == answered.number


async def test_the_end_of_the_period_waits_for_an_answer_under_way(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work, claim = await kept(rt, make, conn)
    answering = Factory(first.rt, make.owner)
    async with first.doing(answering.answer(work.number, "red")):
        _, job = await first.then(claim.continue_in_grace(work.lease, ends=True), conn)
    assert job is not None
    assert job.run == 2


async def test_an_answer_after_the_end_leaves_the_job_to_any_worker(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work, claim = await kept(rt, make, conn, first.rt)
    async with first.doing(claim.leave_grace(work.lease)):
        verdict = await first.then(make.answer(work.number, "red"), conn)
    assert verdict.job_status is Status.RESUMED
    assert await status(rt, work) is Status.RESUMED


async def test_a_claim_whose_agent_has_ended_goes_back(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work, claim = await kept(rt, make, conn)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.CLAIMED
    await claim.leave_grace(work.lease)
    assert await status(rt, work) is Status.RESUMED


async def test_an_answer_at_the_end_of_the_period_is_late(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock
) -> None:
    work, _ = await kept(rt, make, conn)
    await clock.forward(61)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.RESUMED


async def test_the_end_of_an_older_grace_period_leaves_a_newer_one_alone(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    """The worker still waits for its first run, while the job is parked by a later run."""
    old, claim = await kept(rt, make, conn)
    await make.answer(old.number, "red")
    _, job = await claim.continue_in_grace(old.lease, ends=False)
    assert job is not None
    second = QUESTION.model_copy(update={"key": "b"})
    await rt.asking.ask(job.lease, second, grace=60)
    assert await claim.continue_in_grace(old.lease, ends=True) == (False, None)
    await make.answer(old.number, "red", n=2)
    await claim.leave_grace(old.lease)
    assert await status(rt, old) is Status.CLAIMED
    assert await claim.release_lost_claims([], [old.lease]) == 1
    assert await status(rt, old) is Status.RESUMED


async def test_a_claim_in_a_grace_period_is_not_lost(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work, claim = await kept(rt, make, conn)
    await make.answer(work.number, "red")
    assert await claim.release_lost_claims([], [work.lease]) == 0
    assert await status(rt, work) is Status.CLAIMED


async def pause(rt: Runtime, conn: Connection, make: Factory) -> None:
    await rt.queues.pause("work", make.owner, "repair")


async def drain(rt: Runtime, conn: Connection, make: Factory) -> None:
    await run(conn, "UPDATE draftsman.workers SET draining = true")


async def remove(rt: Runtime, conn: Connection, make: Factory) -> None:
    await run(conn, "DELETE FROM draftsman.workers")


async def kill(rt: Runtime, conn: Connection, make: Factory) -> None:
    await run(conn, f"SELECT pg_advisory_unlock({LOCK})")


@pytest.mark.parametrize("prepare", [pause, drain, remove, kill])
async def test_a_job_that_no_worker_or_not_this_worker_may_claim_is_not_claimed(
    make: Factory,
    rt: Runtime,
    conn: Connection,
    prepare: Callable[[Runtime, Connection, Factory], Awaitable[None]],
) -> None:
    work, claim = await kept(rt, make, conn)
    await prepare(rt, conn, make)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.RESUMED
    assert await claim.continue_in_grace(work.lease, ends=False) == (False, None)


async def test_a_claim_of_another_worker_is_left_to_it(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work, claim = await kept(rt, make, conn)
    await drain(rt, conn, make)
    await make.answer(work.number, "red")
    other = await make.claimed(work.number, worker=uuid4())
    assert await claim.continue_in_grace(work.lease, ends=False) == (False, None)
    await claim.leave_grace(work.lease)
    assert await status(rt, work) is Status.CLAIMED
    (started,) = await claim.start([other.lease])
    assert started.run == 2


def call(cost: float) -> CallEstimate:
    return CallEstimate("m", 1, 1, cost)


async def test_a_call_in_flight_reserves_while_its_agent_waits_and_after_the_answer(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    await set_budgets(conn, all={"cost_usd": 10})
    id = new_id()
    work, claim = await kept(rt, make, conn, in_flight=id)
    other = await make.running()

    async def reserved() -> str:
        return (await rt.model_calls.reserve(other.lease, new_id(), call(5))).outcome

    assert await reserved() == "wait", "the run is parked, and its agent waits"
    answering = Factory(first.rt, make.owner)
    async with first.doing(answering.answer(work.number, "red")):
        assert await reserved() == "wait", "before the commit of the answer"
    assert await reserved() == "wait", "after it"
    assert await BudgetSweep(rt.db, [], "UTC").sweep(LeaderTerm()) == 0
    _, job = await claim.continue_in_grace(work.lease, ends=False)
    assert job is not None
    assert await reserved() == "wait", "the next run has the call"
    await rt.model_calls.record(job.lease, {"cost_usd": 6}, "m", id)
    assert await reserved() == "reserved"
    [use] = [use for use in await rt.budgets.uses() if use.name == "all:*"]
    assert (use.used, use.reserved) == (6, 5)


async def test_a_call_that_ends_after_the_period_counts_and_reserves_until_then(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock
) -> None:
    await set_budgets(conn, all={"cost_usd": 10})
    id = new_id()
    work, claim = await kept(rt, make, conn, in_flight=id)
    other = await make.running()
    assert await claim.continue_in_grace(work.lease, ends=True) == (True, None)
    await make.answer(work.number, "red")
    assert await status(rt, work) is Status.RESUMED
    state = await rt.model_calls.reserve(other.lease, new_id(), call(5))
    assert state.outcome == "wait"
    for cost in (6, 11):
        used = await rt.model_calls.record(work.lease, {"cost_usd": cost}, "m", id)
    assert [state.used for state in used] == [11]
    [parked] = await rt.read_model.runs(work.number)
    assert (parked.usage or {})["cost_usd"] == 11


async def test_a_call_that_never_ends_reserves_until_its_agent_has_exited(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock
) -> None:
    await set_budgets(conn, all={"cost_usd": 10})
    await kept(rt, make, conn, in_flight=new_id())
    await clock.forward(89)
    [use] = await rt.budgets.uses()
    assert use.reserved == 6
    await clock.forward(2)
    [use] = await rt.budgets.uses()
    assert use.reserved == 0, "an agent has half a minute to exit after the period"
    await clock.forward(30)
    assert await BudgetSweep(rt.db, [], "UTC").sweep(LeaderTerm()) == 3
    assert await value(conn, PERIODS) == 0
