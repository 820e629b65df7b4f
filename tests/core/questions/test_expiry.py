"""Expiry of questions: the job expires, takes the default, or continues without an answer."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.questions.question import QuestionStatus
from draftsman.questions.store import questions
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from tests.support.clock import Clock
from tests.support.statements import run


async def _overdue(make: Factory, **changed: Any) -> ClaimedJob:
    return await make.asked(QUESTION.model_copy(update={"expires_in": 0.000001} | changed))


async def test_a_job_expires_with_its_question(make: Factory, rt: Runtime) -> None:
    work = await _overdue(make)
    assert await rt.expiry.expire(LeaderTerm()) == 1
    job = await rt.read_model.job(work.number)
    question = await rt.questions.get(work.number, 1)
    assert (job.status, job.last_error) == (Status.EXPIRED, None)
    assert question.status is QuestionStatus.EXPIRED
    assert question.resolution == {"outcome": "expired", "via": "system"}
    assert question.answered_at is None


async def test_an_applied_default_is_an_answer_of_the_policy(make: Factory, rt: Runtime) -> None:
    work = await _overdue(make, on_expire="default", default="blue")
    assert await rt.expiry.expire(LeaderTerm()) == 1
    job = await rt.read_model.job(work.number)
    question = await rt.questions.get(work.number, 1)
    assert job.status is Status.RESUMED
    assert question.status is QuestionStatus.ANSWERED
    assert question.resolution == {"outcome": "answered", "via": "policy", "value": "blue"}
    assert question.answered_at is not None
    assert (await rt.questions.of_job(work.number))[1] == []


async def test_a_job_continues_without_an_answer(make: Factory, rt: Runtime) -> None:
    work = await _overdue(make, on_expire="continue")
    assert await rt.expiry.expire(LeaderTerm()) == 1
    job = await rt.read_model.job(work.number)
    question = await rt.questions.get(work.number, 1)
    assert job.status is Status.RESUMED
    assert question.status is QuestionStatus.EXPIRED
    assert question.resolution == {"outcome": "expired", "via": "policy"}


async def test_an_expired_approval_is_expired_and_not_denied(make: Factory, rt: Runtime) -> None:
    work = await make.asked(GATE.model_copy(update={"expires_in": 0.000001}))
    assert await rt.expiry.expire(LeaderTerm()) == 1
    question = await rt.questions.get(work.number, 1)
    assert (await rt.read_model.job(work.number)).status is Status.EXPIRED
    assert question.resolution == {"outcome": "expired", "via": "system"}


async def test_votes_below_the_quorum_do_not_approve_an_expired_approval(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(GATE.model_copy(update={"expires_in": 60.0, "quorum": 2}))
    await make.decide(work.number, True, make.owner)
    await clock.forward(61)
    assert await rt.expiry.expire(LeaderTerm()) == 1
    assert (await rt.read_model.job(work.number)).status is Status.EXPIRED


async def test_an_event_records_the_missing_answer(make: Factory, rt: Runtime) -> None:
    work = await _overdue(make, on_expire="continue")
    await rt.expiry.expire(LeaderTerm())
    expired, resumed = (await rt.read_model.job_events(work.number))[-2:]
    assert (expired.kind, expired.actor) == ("question_expired", "system")
    assert expired.payload == {
        "question": 1,
        "key": "pick",
        "outcome": "expired",
        "via": "policy",
    }
    assert (resumed.kind, resumed.actor) == ("job_resumed", "system")


async def test_only_overdue_questions_expire_and_only_once(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    soon = await make.asked(QUESTION.model_copy(update={"expires_in": 60.0}))
    later = await make.asked(QUESTION.model_copy(update={"expires_in": 600.0}))
    never = await make.asked(QUESTION.model_copy(update={"never_expires": True}))
    answered = await make.asked(QUESTION.model_copy(update={"expires_in": 60.0}))
    await make.answer(answered.number, "red")
    await clock.forward(61)
    assert [await rt.expiry.expire(LeaderTerm()) for _ in range(2)] == [1, 0]
    statuses = [(await rt.read_model.job(w.number)).status for w in (soon, later, never, answered)]
    assert statuses == [
        Status.EXPIRED,
        Status.WAITING_FOR_INPUT,
        Status.WAITING_FOR_INPUT,
        Status.RESUMED,
    ]


async def test_an_answer_at_the_expiry_is_late_for_everyone(
    make: Factory, conn: Connection
) -> None:
    """Time does not pass in a transaction: all three questions are due at the same moment."""
    work = await make.asked()
    async with conn.transaction():
        await run(conn, "UPDATE draftsman.job_questions SET expires_at = draftsman.now()")
        locked = await questions.lock(conn, work.number, 1)
        assert locked is not None
        assert locked.due
        assert await questions.extend(conn, work.number, 1, 60.0, "cli:root") == (False, None)
        assert await questions.expire(conn, LeaderTerm(), 100) == 1


@pytest.mark.parametrize("on_expire", ["expire", "continue"])
async def test_an_answer_after_the_expiry_is_stored_and_refused(
    make: Factory, rt: Runtime, on_expire: str
) -> None:
    work = await _overdue(make, on_expire=on_expire)
    await rt.expiry.expire(LeaderTerm())
    late = await make.answer(work.number, "red")
    assert (late.accepted, late.reason) == (False, f"{work.name}/1 has already expired")
    assert len((await rt.questions.of_job(work.number))[1]) == 1
