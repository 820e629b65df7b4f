"""Budgets in the database: reservations, usage, raises and the costs of a day."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftsman.costs import budgets
from draftsman.costs.budgets import BudgetState, CallEstimate, own_budget
from draftsman.costs.service import BudgetSweep
from draftsman.database.database import Connection
from draftsman.deliveries.result_text import usage_text
from draftsman.deliveries.store import deliveries
from draftsman.errors import LeaseLost
from draftsman.ids import new_id
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman.settings.budgets import BudgetsSettings
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.support.budgets import set_budgets
from tests.support.clock import Clock
from tests.support.statements import rows

REPO = "https://git.example.org/acme/shop"


def call(cost: float | None = 1.0, tokens: int = 10) -> CallEstimate:
    return CallEstimate("model-1", tokens, tokens, cost)


async def use(rt: Runtime, work: ClaimedJob, cost: float, **fields: Any) -> list[BudgetState]:
    """Record the usage of a run so far."""
    return await rt.model_calls.record(work.lease, {"cost_usd": cost}, **fields)


async def outcome(rt: Runtime, work: ClaimedJob, estimate: CallEstimate, **own: float) -> str:
    """Reserve a call; return the outcome."""
    state = await rt.model_calls.reserve(work.lease, new_id(), estimate, own)
    return state.outcome


async def test_messages_have_the_usage_of_all_runs(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running(notify=("log",))
    await rt.model_calls.record(work.lease, {"output_tokens": 1000, "cost_usd": 0.424})
    await rt.settlement.outcome(work, Done({"summary": "done"}))
    for kind in ("status", "result"):
        [(seq,)] = await rows(
            conn, f"SELECT seq FROM draftsman.deliveries WHERE kind = '{kind}' ORDER BY seq LIMIT 1"
        )
        facts = await deliveries.message_facts(conn, seq)
        assert facts.usage == {"tokens": 1000, "cost": 0.424}
    assert usage_text(**(facts.usage or {})) == "1,000 tokens, $0.42"
    assert (usage_text(), usage_text(5, 0.001)) == ("", "5 tokens, <$0.01")


async def test_a_call_is_refused_once_its_budget_is_used(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    id = new_id()
    own = {"cost_usd": 1.0}
    assert (await rt.model_calls.reserve(work.lease, id, call(5.0), own)).outcome == "reserved"
    assert await use(rt, work, 0.75, call=id, profile_budget=own) == []
    assert await outcome(rt, work, call(5.0), **own) == "reserved", "a call may pass it"
    [state] = await use(rt, work, 1.5, profile_budget=own)
    assert state == BudgetState("used", f"job:{work.number}", None, "cost_usd", 1.5, 5.0, 1.0, 0.0)
    assert await outcome(rt, work, call(0.0), **own) == "used"
    assert (await rt.model_calls.reserve(work.lease, None, call(), own)).outcome == "used"


async def test_a_call_waits_for_the_reservations_of_others(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    first = new_id()
    second = new_id()
    own = {"output_tokens": 100}
    reserve = rt.model_calls.reserve
    assert (await reserve(work.lease, first, call(tokens=60), own)).outcome == "reserved"
    assert (await reserve(work.lease, first, call(tokens=60), own)).outcome == "reserved", "again"
    state = await reserve(work.lease, second, call(tokens=50), own)
    assert (state.outcome, state.measure, state.reserved) == ("wait", "output_tokens", 60)
    assert (await reserve(work.lease, second, call(tokens=40), own)).outcome == "reserved"
    await rt.model_calls.release(first)
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
        await rt.model_calls.reserve(work.lease, new_id(), call())
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
    await rt.model_calls.record(work.lease, usage, "model-1")
    await rt.model_calls.record(work.lease, usage | {"cost_usd": 0.3}, "model-2")
    await rt.model_calls.record(work.lease, usage | {"cost_usd": 0.3}, "model-2")
    await rt.model_calls.record(work.lease, {"cost_usd": "much", "input_tokens": True})
    uses = await rows(
        conn,
        "SELECT name, day = '-infinity', cost_usd::text, input_tokens FROM draftsman.budget_uses"
        " ORDER BY name",
    )
    assert uses == [
        ("all:*", False, "0.300000000", 7),
        (f"job:{work.number}", True, "0.300000000", 7),
        (f"person:{work.invoker_id}", False, "0.300000000", 7),
        ("repo:git.example.org/acme/shop", False, "0.300000000", 7),
    ]
    costs = await rows(
        conn,
        "SELECT repo, agent, model, calls, cost_usd::float8 FROM draftsman.daily_costs"
        " ORDER BY model",
    )
    assert costs == [
        ("git.example.org/acme/shop", "codex", "model-1", 1, 0.1),
        ("git.example.org/acme/shop", "codex", "model-2", 1, pytest.approx(0.2)),
    ]


async def test_an_answer_raises_the_budget_once(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    own = {"cost_usd": 1.0}
    [state] = await use(rt, work, 1.25, profile_budget=own)
    question = budgets.question_of(state, work.name, work.run)
    assert question.text == f"{work.name} has used $1.25 of $1.00. Add $1, add $4, or stop?"
    await rt.asking.ask(work.lease, question)
    response = Response(source_event_id="1", text="$0.50")
    assert (await rt.questions.answer(work.number, 1, response, make.owner)).accepted
    again = await make.running(work.number)
    for _ in range(2):
        await rt.model_calls.raise_budget(again.lease, 1, 0.5)
    assert await outcome(rt, again, call(), **own) == "reserved"
    [state] = await use(rt, again, 0.25, profile_budget=own)
    assert (state.used, state.budget, state.added) == (1.5, 1.5, 0.5)
    events = await rows(
        conn, "SELECT payload FROM draftsman.job_events WHERE kind = 'budget_raised'"
    )
    assert [(event["added"], event["budget"]) for (event,) in events] == [
        (0.5, f"job:{work.number}")
    ]
    assert "Add $1, add $4" in budgets.question_of(state, work.name, again.run).text


async def test_a_value_replaces_each_value_in_every_scope(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    assert await set_budgets(
        conn,
        job={"output_tokens": 1000},
        repo={
            "*": {"cost_usd": 1},
            "shop": {"cost_usd": 2},
            "acme/shop": {"cost_usd": 3},
            "gitlab.example/acme/shop": {"cost_usd": 4},
        },
        person={"anna": {"cost_usd": 4}},
    )
    work = await make.running(repo=REPO)
    names = {state.name: state.budget for state in await use(rt, work, 3)}
    assert names == {"repo:git.example.org/acme/shop": 3}
    other = await make.running(repo="https://git.example.org/tools/shop")
    assert {state.name: state.budget for state in await use(rt, other, 2)} == {
        "repo:git.example.org/tools/shop": 2
    }
    other = await make.running(repo="https://gitlab.example/acme/shop")
    assert {state.name: state.budget for state in await use(rt, other, 4)} == {
        "repo:gitlab.example/acme/shop": 4
    }, "of the same name on another host"
    other = await make.running(repo="https://Git.example.org/ACME/Shop")
    assert await outcome(rt, other, call()) == "used", "forges ignore the case"
    other = await make.running(repo="https://git.example.org/tools/x")
    assert [state.budget for state in await use(rt, other, 1.5)] == [1]
    assert await outcome(rt, work, call()) == "used"
    states = await rt.model_calls.record(work.lease, {"cost_usd": 3, "output_tokens": 1000})
    assert [state.name for state in states] == [
        f"job:{work.number}",
        "repo:git.example.org/acme/shop",
    ]


async def test_an_amount_of_the_profile_replaces_that_of_the_configuration(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_budgets(conn, job={"cost_usd": 1, "input_tokens": 50})
    work = await make.running()
    states = await rt.model_calls.record(
        work.lease, {"cost_usd": 2, "input_tokens": 50}, profile_budget={"cost_usd": 5}
    )
    assert [(state.measure, state.budget) for state in states] == [("input_tokens", 50)]


async def test_a_call_may_use_no_more_than_the_budget_of_a_call(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_budgets(conn, call={"cost_usd": 0.5, "output_tokens": 100})
    work = await make.running()
    assert await outcome(rt, work, call(0.5, 100)) == "reserved"
    assert await outcome(rt, work, call(0.6, 100)) == "call"
    assert await outcome(rt, work, call(None, 100)) == "price"
    state = await rt.model_calls.reserve(work.lease, new_id(), call(0.5, 101))
    failure = budgets.failure_of(state, call(0.5, 101))
    assert str(failure) == (
        "the call may use 101 output tokens, more than 100 output tokens; the limit is"
        " output_tokens of [budgets.call]"
    )


async def test_a_budget_of_a_day_is_new_on_the_next_day_in_its_time_zone(
    rt: Runtime, make: Factory, conn: Connection, clock: Clock
) -> None:
    await set_budgets(conn, all={"cost_usd": 1}, timezone="Pacific/Kiritimati")
    work = await make.running()
    [state] = await use(rt, work, 1.5)
    zone = ZoneInfo("Pacific/Kiritimati")
    now = datetime.now(zone)
    assert state.day == now.date()
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), zone)
    assert state.seconds_left == pytest.approx((midnight - now).total_seconds(), abs=5)
    question = budgets.question_of(state, work.name, work.run)
    assert question.on_expire == "continue", "without an answer the job continues on the next day"
    assert question.expires_in == state.seconds_left is not None
    assert question.text.startswith(f"All jobs together have used $1.50 of $1.00 on {state.day}.")
    await clock.forward(question.expires_in or 0)
    await clock.forward(1)
    assert await outcome(rt, work, call()) == "reserved"
    await rt.model_calls.record(work.lease, {"cost_usd": 1.75})
    costs = await rt.budgets.costs("day", 2 * 86_400)
    assert [cost.cost_usd for cost in costs] == [1.5, 0.25]


async def test_the_leader_writes_the_budgets_and_deletes_reservations_of_lost_runs(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.running()
    await outcome(rt, work, call())
    await rt.settlement.release_run(work, "shutdown")
    term = LeaderTerm(make.worker, 1)
    rules = BudgetsSettings.model_validate({"job": {"cost_usd": 5}}).rules()
    sweep = BudgetSweep(rt.db, rules, "UTC").sweep
    assert await sweep(term) == 0, "the term is over"
    await conn.execute(
        "INSERT INTO draftsman.leases (name, owner, term, expires_at)"
        " VALUES ('leader', %s, 1, draftsman.now() + interval '1 minute')",
        (make.worker,),
    )
    sweep = BudgetSweep(rt.db, rules, "UTC").sweep
    assert await sweep(term) == 3, "one of the job, one of the person and one of all"
    assert await sweep(term) == 0
    assert [use.name for use in await rt.budgets.uses()] == ["job:*", f"job:{work.number}"]
    assert not await set_budgets(conn, job={"cost_usd": 5}), "they are the same"


async def test_only_an_operator_decides_on_a_budget(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.running(actor=people.anna)
    [state] = await use(rt, work, 2, profile_budget={"cost_usd": 1})
    await rt.asking.ask(work.lease, budgets.question_of(state, work.name, work.run))
    for person in (people.anna, people.ben):
        response = Response(source_event_id=person.id, text="1")
        verdict = await rt.questions.answer(work.number, 1, response, person)
        assert not verdict.accepted
        assert "may not decide on a budget (needs the role operator)" in (verdict.reason or "")


OPS = st.tuples(st.sampled_from(("reserve", "record", "release")), st.integers(1, 12))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(ops=st.lists(OPS, min_size=4, max_size=20))
async def test_calls_within_their_reservations_pass_a_budget_by_one_call(
    rt: Runtime, make: Factory, ops: list[tuple[str, int]]
) -> None:
    budget = 20
    used = 0
    running = dict[UUID, int]()
    own = {"input_tokens": float(budget)}
    work = await make.running()
    for op, tokens in ops:
        if op == "reserve":
            id = new_id()
            estimate = CallEstimate("m", tokens, 0, 0.0)
            state = await rt.model_calls.reserve(work.lease, id, estimate, own)
            reserved = sum(running.values())
            fits = not running or used + reserved + tokens <= budget
            expected = "used" if used >= budget else "reserved" if fits else "wait"
            assert state.outcome == expected
            if expected == "reserved":
                running[id] = tokens
            else:
                assert (state.used, state.reserved) == (used, reserved)
        elif running:
            id, most = running.popitem()
            if op == "release":
                await rt.model_calls.release(id)
                continue
            used += min(tokens, most)
            states = await rt.model_calls.record(
                work.lease, {"input_tokens": used}, call=id, profile_budget=own
            )
            assert bool(states) == (used >= budget)
    assert used < budget + 12


async def test_a_budget_that_the_profile_of_a_repository_loses_is_removed_from_its_jobs(
    rt: Runtime, make: Factory
) -> None:
    work = await make.running()
    await use(rt, work, 1.5, profile_budget={"cost_usd": 1.0})
    assert await outcome(rt, work, call(0.0), cost_usd=1.0) == "used"
    assert await use(rt, work, 1.75) != [], "a writer without the profile does not change it"
    assert (own_budget({}), own_budget(None)) == ({}, {})
    state = await rt.model_calls.reserve(work.lease, new_id(), call(0.0), own_budget({}))
    assert state.outcome == "reserved"
    assert await rt.budgets.uses() == []


async def test_a_worker_that_dies_in_a_call_releases_it_and_a_budget_is_passed_by_one_call(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_budgets(conn, all={"cost_usd": 10})
    worker = await make.worker_row()
    id = new_id()
    dead = await make.running(worker=worker)
    other = await make.running()
    await use(rt, other, 9)
    assert (await rt.model_calls.reserve(dead.lease, id, call(6))).outcome == "reserved"
    assert await outcome(rt, other, call(1)) == "wait"
    assert await rt.dead_workers.rescue(LeaderTerm(), [worker]) == 1
    with pytest.raises(LeaseLost):
        await rt.model_calls.record(dead.lease, {"cost_usd": 6}, "m", id)
    heir = await make.running()
    assert await outcome(rt, heir, call(6)) == "reserved"
    [state] = await use(rt, heir, 6)
    assert (state.used, state.budget) == (15, 10), "one call has passed it"
    assert await outcome(rt, heir, call(0)) == "used"
