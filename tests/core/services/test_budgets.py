"""Budgets in the database: reservations, usage, raises and the costs of a day."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.domain import budgets
from draftsman.domain.budgets import BudgetState, CallEstimate
from draftsman.domain.ids import new_id
from draftsman.domain.response import Response
from draftsman.domain.run import ClaimedJob
from draftsman.errors import LeaseLost
from draftsman.runtime import Runtime
from draftsman.store.postgres.database import Connection
from tests.factories import Factory
from tests.support.statements import rows

REPO = "https://git.example.org/acme/shop"


def call(cost: float | None = 1.0, tokens: int = 10) -> CallEstimate:
    return CallEstimate("model-1", tokens, tokens, cost)


async def use(rt: Runtime, work: ClaimedJob, cost: float, **fields: Any) -> list[BudgetState]:
    """Record the usage of a run so far."""
    return await rt.checkpoints.usage(work.lease, {"cost_usd": cost}, **fields)


async def outcome(rt: Runtime, work: ClaimedJob, estimate: CallEstimate, **own: float) -> str:
    """Reserve a call; return the outcome."""
    state = await rt.checkpoints.reserve(work.lease, new_id(), estimate, own)
    return state.outcome


async def test_a_call_is_refused_once_its_budget_is_used(rt: Runtime, make: Factory) -> None:
    work, id = await make.running(), new_id()
    own = {"cost_usd": 1.0}
    assert (await rt.checkpoints.reserve(work.lease, id, call(5.0), own)).outcome == "reserved"
    assert await use(rt, work, 0.75, call=id, own=own) == []
    assert await outcome(rt, work, call(5.0), **own) == "reserved", "a call may pass it"
    [state] = await use(rt, work, 1.5, own=own)
    assert state == BudgetState("used", f"job:{work.number}", None, "cost_usd", 1.5, 5.0, 1.0, 0.0)
    assert await outcome(rt, work, call(0.0), **own) == "used"
    assert (await rt.checkpoints.reserve(work.lease, None, call(), own)).outcome == "used"


async def test_a_call_waits_for_the_reservations_of_others(rt: Runtime, make: Factory) -> None:
    work, first, second = await make.running(), new_id(), new_id()
    own = {"output_tokens": 100}
    reserve = rt.checkpoints.reserve
    assert (await reserve(work.lease, first, call(tokens=60), own)).outcome == "reserved"
    assert (await reserve(work.lease, first, call(tokens=60), own)).outcome == "reserved", "again"
    state = await reserve(work.lease, second, call(tokens=50), own)
    assert (state.outcome, state.measure, state.reserved) == ("wait", "output_tokens", 60)
    assert (await reserve(work.lease, second, call(tokens=40), own)).outcome == "reserved"
    await rt.checkpoints.release(first)
    assert (await reserve(work.lease, new_id(), call(tokens=60), own)).outcome == "reserved"


async def test_a_call_without_a_price_needs_a_budget_in_tokens(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    assert await outcome(rt, work, call(None), input_tokens=5) == "reserved"
    assert await outcome(rt, work, call(None), cost_usd=5) == "price"


async def test_reservations_of_a_lost_run_do_not_count(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    assert await outcome(rt, work, call(5.0), cost_usd=5) == "reserved"
    await rt.settlement.release_run(work, "shutdown")
    with pytest.raises(LeaseLost):
        await rt.checkpoints.reserve(work.lease, new_id(), call())
    with pytest.raises(LeaseLost):
        await use(rt, work, 1.0)
    again = await make.running(work.number)
    assert await outcome(rt, again, call(5.0), cost_usd=5) == "reserved"
    left = await rows(conn, "SELECT DISTINCT lease_token FROM draftsman.budget_reservations")
    assert left == [(again.lease.token,)], "those of the lost run are deleted"


async def test_usage_counts_for_the_run_its_budgets_and_its_day(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running(repo=REPO, agent="codex")
    usage = {"cost_usd": 0.1, "input_tokens": 7, "note": [1]}
    await rt.checkpoints.usage(work.lease, usage, "model-1")
    await rt.checkpoints.usage(work.lease, usage | {"cost_usd": 0.3}, "model-2")
    await rt.checkpoints.usage(work.lease, usage | {"cost_usd": 0.3}, "model-2")
    await rt.checkpoints.usage(work.lease, {"cost_usd": "much", "input_tokens": True})
    uses = await rows(
        conn,
        "SELECT name, day = '-infinity', cost_usd::text, input_tokens FROM draftsman.budget_uses"
        " ORDER BY name",
    )
    assert uses == [
        ("all:*", False, "0.300000000", 7),
        (f"job:{work.number}", True, "0.300000000", 7),
        (f"person:{work.invoker_id}", False, "0.300000000", 7),
        ("repo:acme/shop", False, "0.300000000", 7),
    ]
    costs = await rows(
        conn,
        "SELECT repo, agent, model, calls, cost_usd::float8 FROM draftsman.daily_costs"
        " ORDER BY model",
    )
    assert costs == [
        ("acme/shop", "codex", "model-1", 1, 0.1),
        ("acme/shop", "codex", "model-2", 1, pytest.approx(0.2)),
    ]


async def test_an_answer_raises_the_budget_once(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work, own = await make.running(), {"cost_usd": 1.0}
    [state] = await use(rt, work, 1.25, own=own)
    question = budgets.question_of(state, work.name, work.run)
    assert question.text == f"{work.name} has used $1.25 of $1.00. Add $1, add $4, or stop?"
    await rt.questions.ask(work.lease, question)
    response = Response(source_event_id="1", text="$0.50")
    assert (await rt.questions.answer(work.number, 1, response, make.owner)).accepted
    again = await make.running(work.number)
    for _ in range(2):
        await rt.checkpoints.raise_budget(again.lease, 1, 0.5)
    assert await outcome(rt, again, call(), **own) == "reserved"
    [state] = await use(rt, again, 0.25, own=own)
    assert (state.used, state.budget, state.added) == (1.5, 1.5, 0.5)
    events = await rows(
        conn, "SELECT payload FROM draftsman.job_events WHERE kind = 'budget_raised'"
    )
    assert [(event["added"], event["budget"]) for (event,) in events] == [
        (0.5, f"job:{work.number}")
    ]
    assert "Add $1, add $4" in budgets.question_of(state, work.name, again.run).text
