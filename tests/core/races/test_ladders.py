"""Steps of ladders concurrent with answers, acknowledgments, and another leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from draftsman.attention import store as attention
from draftsman.attention.ladder import LadderNotice, NotificationOutcome, StepPlan
from draftsman.database.database import Connection, Database
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman.worker.registry import store as workers
from draftsman_testing.factories import QUESTION, Factory
from tests.support.clock import Clock
from tests.support.races import FirstSession, hold_commits
from tests.support.statements import run

ASK = QUESTION.model_copy(update={"expires_in": 100_000.0})
STEPS: list[dict[str, Any]] = [
    {"notify": ["ben"], "after": 60},
    {"notify": ["ben", "carol"], "after": 60},
]


@pytest.fixture
def rt(settings: Settings, db: Database) -> Runtime:
    """Provide services with a ladder."""
    people = {name: person.model_dump() for name, person in settings.people.items()}
    values: dict[str, Any] = {
        "database_url": settings.database_url,
        "data_dir": settings.data_dir,
        "types": {"noop": {}},
        "people": people,
        "ladders": {"default": {"steps": STEPS}},
        "questions": {"ladders": {"input": "default"}},
    }
    return wire(settings_model().model_validate(values), db, False)


@pytest.fixture
async def first(rt: Runtime) -> AsyncIterator[FirstSession]:
    """Provide the session that works first."""
    async with hold_commits(rt) as first:
        yield first


async def _steps(rt: Runtime, job: int) -> list[tuple[int, str]]:
    """Return the notifications of a job's question."""
    async with rt.db.connection() as conn:
        return [(n.step, n.recipient) for n in await attention.notifications(conn, [job])]


async def _sweep(rt: Runtime, term: LeaderTerm | None = None) -> int:
    return await rt.sweeps.run("ladders", term or LeaderTerm())


async def _take(rt: Runtime, on: Runtime, job: int) -> bool:
    """Take the due step of a job in a transaction of `on`."""
    plan = StepPlan(None, (LadderNotice("ben", NotificationOutcome.INBOX),), (), 60.0)
    async with rt.db.connection() as conn:
        (due,) = [
            step for step in await attention.due_steps(conn, LeaderTerm(), 100) if step.job == job
        ]
    return await on.db.run_transaction(
        lambda conn: attention.take_step(conn, LeaderTerm(), due, plan)
    )


async def test_two_leaders_take_a_step_once(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock
) -> None:
    works = [await make.asked(ASK) for _ in range(3)]
    await clock.forward(61)
    await first.reopen()
    async with first.doing(_take(rt, first.rt, works[0].number)) as taken:
        async with asyncio.timeout(5):
            assert await _sweep(rt) == 2, "it does not wait for the first session"
    assert taken.result()
    await asyncio.gather(*(_sweep(rt) for _ in range(5)))
    assert [await _steps(rt, work.number) for work in works] == [[(1, "ben")]] * 3


async def test_steps_in_an_open_transaction_keep_no_other_waiting(
    make: Factory, rt: Runtime, clock: Clock, conn: Connection
) -> None:
    works = [await make.asked(ASK) for _ in range(2)]
    await clock.forward(61)
    await conn.execute("BEGIN")
    await run(
        conn,
        "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE",
        (works[0].number,),
    )
    async with rt.db.connection() as other:
        due = await attention.due_steps(other, LeaderTerm(), 1)
    assert [step.job for step in due] == [works[1].number]
    await conn.execute("COMMIT")


async def test_an_answer_waits_for_a_step_and_stops_the_next(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, conn: Connection
) -> None:
    work = await make.asked(ASK)
    await clock.forward(61)
    await first.reopen()
    async with first.doing(_take(rt, first.rt, work.number)):
        verdict = await first.then(make.answer(work.number, "red"), conn)
    assert verdict.accepted
    await clock.forward(61)
    assert await _sweep(rt) == 0
    assert await _steps(rt, work.number) == [(1, "ben")]


async def test_a_step_does_not_wait_for_an_answer_or_an_acknowledgment(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock
) -> None:
    answered, held = [await make.asked(ASK) for _ in range(2)]
    await clock.forward(61)
    await first.reopen()
    async with first.doing(Factory(first.rt, make.owner).answer(answered.number, "red")):
        async with asyncio.timeout(5):
            assert await _sweep(rt) == 1, "that of the other question"
    assert await _steps(rt, answered.number) == []
    await clock.forward(61)
    await first.reopen()
    ack = first.rt.acknowledgments.acknowledge(held.number, 1, make.owner, 3600)
    async with first.doing(ack):
        async with asyncio.timeout(5):
            assert await _sweep(rt) == 0
    assert await _sweep(rt) == 0, "the acknowledgment delays the step"
    assert await _steps(rt, held.number) == [(1, "ben")]


async def test_a_step_that_another_leader_took_and_a_former_leader_change_nothing(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    old = uuid4()
    async with rt.db.connection() as conn:
        term = await workers.acquire(conn, "leader", old, 30)
    work = await make.asked(ASK)
    await clock.forward(61)
    assert await _sweep(rt, LeaderTerm(old, term)) == 0, "its lease expired"
    plan = StepPlan(None, (LadderNotice("ben", NotificationOutcome.INBOX),), (), 60.0)
    async with rt.db.connection() as conn:
        (due,) = await attention.due_steps(conn, LeaderTerm(), 100)
        assert not await attention.take_step(conn, LeaderTerm(old, term), due, plan)
    assert await _sweep(rt) == 1
    await clock.forward(61)
    async with rt.db.connection() as conn:
        assert not await attention.take_step(conn, LeaderTerm(), due, plan), (
            "the second step is due now"
        )
    assert await _steps(rt, work.number) == [(1, "ben")]
