"""Budgets in two sessions: reservations at the boundary, usage, raises and a new day."""

from __future__ import annotations

import pytest

from draftsman.costs import budgets
from draftsman.costs.budgets import BudgetState, CallEstimate
from draftsman.database.database import Connection
from draftsman.ids import new_id
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.budgets import set_budgets
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.statements import rows

DAY = 86_400.0


@pytest.fixture(autouse=True)
async def _ten_dollars(conn: Connection) -> None:
    await set_budgets(conn, all={"cost_usd": 10})


async def reserve(rt: Runtime, work: ClaimedJob, cost: float) -> BudgetState:
    return await rt.model_calls.reserve(work.lease, new_id(), CallEstimate("m", 1, 1, cost))


async def test_the_second_of_two_reservations_at_the_boundary_waits_for_the_call(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    one, two = [await make.running() for _ in range(2)]
    async with first.doing(reserve(first.rt, one, 6)) as reserved:
        second = await first.then(reserve(rt, two, 5), conn)
    assert (reserved.result().outcome, second.outcome, second.reserved) == ("reserved", "wait", 6)


async def test_a_reservation_waits_for_the_usage_that_reaches_the_budget(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    one, two = [await make.running() for _ in range(2)]
    async with first.doing(first.rt.model_calls.record(one.lease, {"cost_usd": 10})):
        second = await first.then(reserve(rt, two, 1), conn)
    assert (second.outcome, second.used) == ("used", 10)


async def test_a_raise_waits_for_usage_and_both_count(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    one, two = [await make.running() for _ in range(2)]
    [state] = await rt.model_calls.record(one.lease, {"cost_usd": 10})
    await rt.asking.ask(one.lease, budgets.question_of(state, one.name, one.run))
    response = Response(source_event_id="1", text="10")
    assert (await rt.questions.answer(one.number, 1, response, make.owner)).accepted
    one = await make.running(one.number)
    async with first.doing(first.rt.model_calls.record(two.lease, {"cost_usd": 4})):
        await first.then(rt.model_calls.raise_budget(one.lease, 1, 10), conn)
    state = await reserve(rt, two, 5)
    assert state.outcome == "reserved"
    [use] = [use for use in await rt.budgets.uses() if use.name == "all:*"]
    assert (use.used, use.budget, use.added, use.reserved) == (14, 20, 10, 5)


async def test_a_call_counts_for_the_day_of_its_reservation(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection, clock: Clock
) -> None:
    one = await make.running()
    two = await make.running()
    id = new_id()
    estimate = CallEstimate("m", 1, 1, 6.0)
    assert (await rt.model_calls.reserve(one.lease, id, estimate)).outcome == "reserved"
    async with first.doing(first.rt.model_calls.record(one.lease, {"cost_usd": 9}, None, id)):
        await clock.forward(DAY)
        assert (await reserve(rt, two, 9)).outcome == "reserved", "the other day is not locked"
    days = await rows(
        conn, "SELECT cost_usd::float8 FROM draftsman.budget_uses WHERE name = 'all:*' ORDER BY day"
    )
    assert days == [(9,), (0,)]
