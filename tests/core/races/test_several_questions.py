"""Concurrent answers to several questions of a job, and against other ways to close them."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.answer import Verdict
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import Decision, QuestionStatus
from draftsman.questions.response import Response
from draftsman.questions.store import questions
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from draftsman_testing.waits import background, wait_blocked
from tests.support.clock import Clock
from tests.support.permissions import SHOP
from tests.support.races import FirstSession

S = Status
Q = QuestionStatus
SECOND = QUESTION.model_copy(update={"key": "second", "text": "Which other?"})


async def _answer(rt: Runtime, make: Factory, job: int, n: int) -> Verdict:
    response = Response(source_event_id=f"to {n}", text="red")
    return await rt.questions.answer(job, n, response, make.owner)


async def _state(rt: Runtime, job: int) -> tuple[Status, list[QuestionStatus]]:
    questions, _ = await rt.questions.of_job(job)
    return (await rt.read_model.job(job)).status, [item.status for item in questions]


async def _kinds(rt: Runtime, job: int) -> Counter[str]:
    return Counter(event.kind for event in await rt.read_model.job_events(job))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
async def test_two_answers_to_two_questions_resume_the_job_once(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, order: tuple[int, int]
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND, notify=("log",))
    async with first.doing(_answer(first.rt, make, work.number, order[0])) as one:
        two = await first.then(_answer(rt, make, work.number, order[1]), conn)
    assert (one.result().job_status, two.job_status) == (S.WAITING_FOR_INPUT, S.RESUMED)
    assert (one.result().accepted, two.accepted) == (True, True)
    kinds = await _kinds(rt, work.number)
    assert (kinds["answer_received"], kinds["job_resumed"]) == (2, 1)


@pytest.mark.parametrize("approved_first", [True, False])
async def test_an_answer_and_an_approval_resume_the_job_once(
    make: Factory,
    rt: Runtime,
    first: FirstSession,
    conn: Connection,
    people: People,
    approved_first: bool,
) -> None:
    work = await make.asked_at_once(QUESTION, GATE)
    yes = Response(source_event_id="yes", decision=Decision.APPROVE)
    if approved_first:
        approval = first.rt.questions.answer(work.number, 2, yes, people.carol)
        async with first.doing(approval) as one:
            two = await first.then(_answer(rt, make, work.number, 1), conn)
        assert one.result().job_status == S.WAITING_FOR_INPUT
    else:
        async with first.doing(_answer(first.rt, make, work.number, 1)) as one:
            approval = rt.questions.answer(work.number, 2, yes, people.carol)
            two = await first.then(approval, conn)
        assert one.result().job_status == S.WAITING_FOR_APPROVAL
    assert two.job_status == S.RESUMED
    assert await _state(rt, work.number) == (S.RESUMED, [Q.ANSWERED] * 2)


async def test_of_two_alternatives_answered_at_once_one_counts(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND, alternatives=True)
    async with first.doing(_answer(first.rt, make, work.number, 2)) as one:
        two = await first.then(_answer(rt, make, work.number, 1), conn)
    assert (one.result().job_status, one.result().accepted) == (S.RESUMED, True)
    assert (two.accepted, two.reason) == (False, f"{work.name}/1 was already canceled")
    assert await _state(rt, work.number) == (S.RESUMED, [Q.CANCELED, Q.ANSWERED])


async def test_many_answers_to_many_questions_at_once_each_count(
    make: Factory, rt: Runtime
) -> None:
    items = [QUESTION.model_copy(update={"key": f"k{n}", "text": f"{n}?"}) for n in range(20)]
    work = await make.asked_at_once(*items)
    verdicts = await asyncio.gather(
        *(_answer(rt, make, work.number, n) for n in range(1, 21) for _ in range(2))
    )
    assert Counter(verdict.duplicate for verdict in verdicts) == {True: 20, False: 20}
    assert Counter(verdict.job_status for verdict in verdicts)[S.RESUMED] >= 1
    assert await _state(rt, work.number) == (S.RESUMED, [Q.ANSWERED] * 20)
    kinds = await _kinds(rt, work.number)
    assert (kinds["answer_received"], kinds["job_resumed"]) == (20, 1)


@pytest.mark.parametrize("ends", [False, True])
async def test_an_answer_waits_for_the_expiry_of_another_question(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, clock: Clock, ends: bool
) -> None:
    policy = {} if ends else {"on_expire": "continue"}
    soon = QUESTION.model_copy(update={"expires_in": 60.0} | policy)
    work = await make.asked_at_once(soon, SECOND)
    await clock.forward(61)
    await first.reopen()
    expiring = first.rt.db.run_transaction(lambda held: questions.expire(held, LeaderTerm(), 100))
    async with first.doing(expiring):
        verdict = await first.then(_answer(rt, make, work.number, 2), conn)
    assert verdict.accepted is not ends
    expected = (
        (S.EXPIRED, [Q.EXPIRED, Q.CANCELED]) if ends else (S.RESUMED, [Q.EXPIRED, Q.ANSWERED])
    )
    assert await _state(rt, work.number) == expected


async def test_an_expiry_skips_a_job_whose_other_question_is_being_answered(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock
) -> None:
    soon = QUESTION.model_copy(update={"expires_in": 60.0, "on_expire": "continue"})
    work = await make.asked_at_once(soon, SECOND)
    await clock.forward(61)
    await first.reopen()
    async with first.doing(_answer(first.rt, make, work.number, 2)):
        assert await rt.expiry.expire(LeaderTerm()) == 0
    assert await rt.expiry.expire(LeaderTerm()) == 1
    assert await _state(rt, work.number) == (S.RESUMED, [Q.EXPIRED, Q.ANSWERED])
    assert (await _kinds(rt, work.number))["job_resumed"] == 1


async def test_an_answer_during_an_expiry_leaves_no_job_that_waits_for_nothing(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock
) -> None:
    """The statement of the sweep began before the answer, and has not locked this job yet."""
    soon = QUESTION.model_copy(update={"expires_in": 60.0, "on_expire": "continue"})
    earlier = await make.asked_at_once(soon)
    work = await make.asked_at_once(soon, SECOND)
    await clock.forward(61)
    lock = "SELECT FROM draftsman.job_questions WHERE job = %s FOR UPDATE"
    async with rt.db.connection() as watch:
        await conn.execute("BEGIN")
        await conn.execute(lock, (earlier.number,))
        async with background(rt.expiry.expire(LeaderTerm())) as expired:
            await wait_blocked(watch, by=conn.info.backend_pid)
            assert (await _answer(rt, make, work.number, 2)).accepted
            await conn.execute("COMMIT")
            await expired
    await rt.expiry.expire(LeaderTerm())
    assert await _state(rt, work.number) == (S.RESUMED, [Q.EXPIRED, Q.ANSWERED])


async def test_an_answer_waits_for_a_cancel_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND)
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        verdict = await first.then(_answer(rt, make, work.number, 2), conn)
    assert not verdict.accepted
    assert await _state(rt, work.number) == (S.CANCELED, [Q.CANCELED] * 2)


async def test_a_cancel_waits_for_an_answer_that_leaves_a_question_open(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND)
    async with first.doing(_answer(first.rt, make, work.number, 1)) as answered:
        await first.then(rt.job_control.cancel(work.number, make.owner), conn)
    assert answered.result().accepted
    assert await _state(rt, work.number) == (S.CANCELED, [Q.ANSWERED, Q.CANCELED])


async def test_a_denial_waits_for_an_answer_and_ends_the_job(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, people: People
) -> None:
    work = await make.asked_at_once(QUESTION, GATE, SECOND)
    no = Response(source_event_id="no", decision=Decision.DENY)
    async with first.doing(_answer(first.rt, make, work.number, 1)):
        denial = rt.questions.answer(work.number, 2, no, people.carol)
        verdict = await first.then(denial, conn)
    assert verdict.job_status == S.FAILED
    assert await _state(rt, work.number) == (S.FAILED, [Q.ANSWERED, Q.ANSWERED, Q.CANCELED])


async def test_jobs_that_ask_the_same_in_another_order_are_answered_together(
    make: Factory, rt: Runtime
) -> None:
    """Their jobs and digests are locked in one order, whatever the order of their questions."""
    works = [await make.running(repo=SHOP, notify=("log",)) for _ in range(6)]
    pair = [AskedQuestion(QUESTION), AskedQuestion(SECOND)]
    await asyncio.gather(
        *(
            rt.asking.ask_all(work.lease, pair[:: 1 if place % 2 else -1])
            for place, work in enumerate(works)
        )
    )
    await asyncio.gather(*(_answer(rt, make, work.number, 1) for work in works))
    for work in works:
        status, questions = await _state(rt, work.number)
        assert (status, questions) == (S.RESUMED, [Q.ANSWERED] * 2)
        assert (await _kinds(rt, work.number))["job_resumed"] == 1
