"""Reminders and escalations concurrent with answers, and with another leader."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from draftsman.attention import store as attention
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.question import OnExpire
from draftsman.runtime import Runtime
from draftsman.worker.registry import store as workers
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import LOG, deliveries_of
from tests.support.clock import Clock
from tests.support.races import FirstSession

ASK = QUESTION.model_copy(
    update={"expires_in": 100.0, "on_expire": OnExpire.ESCALATE, "escalate_to": "leads"}
)
AFTER = {"remind": 60.0, "expire": 101.0}


async def _done(rt: Runtime, job: int, name: str) -> int:
    """Return the number of reminders or escalations."""
    if name == "remind":
        return [delivery.kind for delivery in await deliveries_of(rt, job)].count(
            DeliveryKind.REMINDER
        )
    return [delivery.kind for delivery in await rt.read_model.job_events(job)].count(
        "question_escalated"
    )


@pytest.mark.parametrize("name", AFTER)
async def test_a_question_answered_before_the_sweep_gets_no_message(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, name: str
) -> None:
    work = await make.asked(ASK, **LOG)
    await clock.forward(AFTER[name])
    await first.reopen()
    async with first.doing(make_on(make, first).answer(work.number, "red")):
        async with asyncio.timeout(5):
            assert await rt.sweeps.run(name, LeaderTerm()) == 0, "it does not wait for the answer"
    assert await rt.sweeps.run(name, LeaderTerm()) == 0
    assert await _done(rt, work.number, name) == 0
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


@pytest.mark.parametrize("name", AFTER)
async def test_an_answer_after_the_sweep_is_accepted(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, conn: Connection, name: str
) -> None:
    work = await make.asked(ASK, **LOG)
    await clock.forward(AFTER[name])
    await first.reopen()
    async with first.doing(first.rt.sweeps.run(name, LeaderTerm())) as swept:
        verdict = await first.then(make.answer(work.number, "red"), conn)
    assert (swept.result(), verdict.accepted) == (1, True)
    assert await _done(rt, work.number, name) == 1
    statuses = [
        delivery
        for delivery in await deliveries_of(rt, work.number)
        if delivery.kind in ("question", "reminder")
    ]
    assert {delivery.status for delivery in statuses} == {"superseded"}


@pytest.mark.parametrize("name", AFTER)
async def test_two_leaders_remind_once(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, name: str
) -> None:
    works = [await make.asked(ASK, **LOG) for _ in range(3)]
    await clock.forward(AFTER[name])
    await first.reopen()
    async with first.doing(first.rt.sweeps.run(name, LeaderTerm())) as swept:
        async with asyncio.timeout(5):
            assert await rt.sweeps.run(name, LeaderTerm()) == 0
    assert swept.result() == 3
    await asyncio.gather(*(rt.sweeps.run(name, LeaderTerm()) for _ in range(5)))
    assert [await _done(rt, work.number, name) for work in works] == [1, 1, 1]


async def test_a_reminder_sent_by_another_leader_is_not_repeated(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """It read, was suspended, and continues after the other leader: its data is outdated."""
    work = await make.asked(ASK, **LOG)
    await clock.forward(60)
    async with rt.db.connection() as conn:
        due = await attention.due_reminders(conn, LeaderTerm(), 100)
        assert len(due) == 1
        assert await rt.sweeps.run("remind", LeaderTerm()) == 1
        assert (
            await attention.remind(conn, LeaderTerm(), [(question, None) for question in due]) == 0
        )
    assert await _done(rt, work.number, "remind") == 1


@pytest.mark.parametrize("name", AFTER)
async def test_a_former_leader_sends_no_reminder(
    make: Factory, rt: Runtime, clock: Clock, name: str
) -> None:
    old = uuid4()
    async with rt.db.connection() as conn:
        term = await workers.acquire(conn, "leader", old, 30)
    work = await make.asked(ASK, **LOG)
    await clock.forward(AFTER[name])
    assert await rt.sweeps.run(name, LeaderTerm(old, term)) == 0
    async with rt.db.connection() as conn:
        due = await attention.due_reminders(conn, LeaderTerm(), 100)
        assert (
            await attention.remind(
                conn, LeaderTerm(old, term), [(delivery, None) for delivery in due]
            )
            == 0
        )
    assert await _done(rt, work.number, name) == 0
    assert await rt.sweeps.run(name, LeaderTerm()) == 1


async def test_a_concurrent_extension_postpones_the_reminder(
    make: Factory, rt: Runtime, clock: Clock, first: FirstSession
) -> None:
    work = await make.asked(ASK, **LOG)
    await clock.forward(60)
    await first.reopen()
    async with first.doing(first.rt.questions.extend(work.number, 1, 1000, make.owner)):
        assert await rt.sweeps.run("remind", LeaderTerm()) == 0
    assert await rt.sweeps.run("remind", LeaderTerm()) == 0
    assert await _done(rt, work.number, "remind") == 0


def make_on(make: Factory, first: FirstSession) -> Factory:
    """Return the factory over the first session."""
    return Factory(first.rt, make.owner)
