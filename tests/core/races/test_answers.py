"""Concurrent answers, and answers against other ways to close a question, in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import QuestionClosed, Refused
from draftsman.jobs.job import AGENT_TYPE, Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision, QuestionStatus
from draftsman.questions.response import Response
from draftsman.questions.store import questions
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, REVIEW, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.server import Server
from tests.support.statements import rows, run

SOON = QUESTION.model_copy(update={"expires_in": 60.0})


def _response(event: str, **fields: Any) -> Response:
    return Response(source_event_id=event, **(fields or {"text": "red"}))


async def _answer(rt: Runtime, make: Factory, job: int, event: str = "b", n: int = 1) -> Verdict:
    return await rt.questions.answer(job, n, _response(event), make.owner)


async def test_one_of_50_concurrent_answers_is_accepted_and_49_are_refused(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.asked()
    verdicts = await asyncio.gather(
        *(_answer(rt, make, work.number, f"event {n}") for n in range(50))
    )
    assert Counter(verdict.accepted for verdict in verdicts) == {True: 1, False: 49}
    reasons = {verdict.reason for verdict in verdicts if not verdict.accepted}
    assert reasons == {f"{work.name}/1 was already answered by root"}
    answers = (await rt.questions.of_job(work.number))[1]
    assert Counter(answer.accepted for answer in answers) == {True: 1, False: 20}
    kinds = Counter(event.kind for event in await rt.read_model.job_events(work.number))
    assert (kinds["job_resumed"], kinds["answer_refused"]) == (1, 20)
    assert await rows(conn, "SELECT answers FROM draftsman.refused_answers") == [(29,)]


async def test_the_second_answer_waits_for_the_first_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    async with first.doing(_answer(first.rt, make, work.number, "a")) as first_answer:
        two = await first.then(_answer(rt, make, work.number), conn)
    assert first_answer.result().accepted
    assert two.reason == f"{work.name}/1 was already answered by root"


async def test_a_click_delivered_twice_concurrently_counts_once(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    async with first.doing(_answer(first.rt, make, work.number, "click")) as first_answer:
        two = await first.then(_answer(rt, make, work.number, "click"), conn)
    assert (first_answer.result().duplicate, two.duplicate, two.accepted) == (False, True, True)
    assert len((await rt.questions.of_job(work.number))[1]) == 1


@pytest.mark.parametrize("approved_first", [True, False])
async def test_the_first_of_concurrent_decisions_decides(
    make: Factory,
    rt: Runtime,
    first: FirstSession,
    conn: Connection,
    people: People,
    approved_first: bool,
) -> None:
    work = await make.asked(GATE)
    yes = Factory(first.rt if approved_first else rt, make.owner)
    no = Factory(rt if approved_first else first.rt, make.owner)
    deciding = [
        yes.decide(work.number, True, people.carol),
        no.decide(work.number, False, people.dave),
    ]
    ahead, behind = deciding if approved_first else deciding[::-1]
    async with first.doing(ahead) as first_answer:
        two = await first.then(behind, conn)
    assert (first_answer.result().accepted, two.accepted) == (True, False)
    expected = Status.RESUMED if approved_first else Status.FAILED
    assert (await rt.read_model.job(work.number)).status is expected


@pytest.mark.parametrize("is_message", [True, False])
@pytest.mark.parametrize("approved_first", [True, False])
async def test_an_approval_and_a_request_for_changes_exclude_each_other(
    make: Factory,
    rt: Runtime,
    first: FirstSession,
    conn: Connection,
    people: People,
    approved_first: bool,
    is_message: bool,
) -> None:
    """A message that arrives after the approval is one like others."""
    work = await make.asked(REVIEW, type=AGENT_TYPE, title="x")
    one, two = (first.rt, rt) if approved_first else (rt, first.rt)
    approval: Any = Factory(one, make.owner).decide(work.number, True, people.carol)
    changes = Decision.REQUEST_CHANGES
    request: Any = Factory(two, make.owner).review(work.number, changes, people.dave, reason="no")
    if is_message:
        request.close()
        request = two.messages.send(work.number, make.owner, "no")
    ahead, behind = (approval, request) if approved_first else (request, approval)
    async with first.doing(ahead):
        await first.then(behind, conn)
    question = await rt.questions.get(work.number, 1)
    assert question.outcome == ("approved" if approved_first else "changes_requested")
    _, answers = await rt.questions.of_job(work.number)
    assert [answer.accepted for answer in answers].count(True) == 1
    messages = await rt.messages.of_job(work.number)
    assert [message.text for message in messages] == ["no"] * (is_message or not approved_first)


async def test_concurrent_votes_approve_once(make: Factory, rt: Runtime, people: People) -> None:
    item = GATE.model_copy(update={"quorum": 2, "approvers": ("carol", "dave", "erin")})
    work = await make.asked(item)
    voters = [people.carol, people.dave, people.erin, people.carol, people.dave, people.erin]
    verdicts = await asyncio.gather(*(make.decide(work.number, True, person) for person in voters))
    assert Counter(verdict.accepted for verdict in verdicts) == {True: 2, False: 4}
    assert Counter(verdict.resolved for verdict in verdicts if verdict.accepted) == {
        True: 1,
        False: 1,
    }
    kinds = Counter(event.kind for event in await rt.read_model.job_events(work.number))
    assert kinds["job_resumed"] == 1


async def _expire(rt: Runtime) -> int:
    """Expire in a transaction, as the sweep does."""
    return await rt.db.run_transaction(lambda conn: questions.expire(conn, LeaderTerm(), 100))


async def test_an_answer_in_time_is_not_expired_by_the_sweep(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock
) -> None:
    """The answer arrives before the expiry and commits after it: the sweep skips the question."""
    work = await make.asked(SOON)
    async with first.doing(_answer(first.rt, make, work.number)) as answered:
        await clock.forward(61)
        async with asyncio.timeout(5):
            assert await _expire(rt) == 0
    assert answered.result().accepted
    assert await _expire(rt) == 0
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_an_answer_during_the_sweep_waits_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, server: Server, database: str, conn: Connection
) -> None:
    """It began in time, by its own clock, but the question is closed when it gets the lock."""
    work = await make.asked(SOON)
    await Clock(first.rt.db, server, database).forward(61, while_in_flight=True)
    async with first.doing(_expire(first.rt)) as expired:
        late = await first.then(_answer(rt, make, work.number), conn)
    assert expired.result() == 1
    assert (late.accepted, late.reason) == (False, f"{work.name}/1 has already expired")
    assert (await rt.read_model.job(work.number)).status is Status.EXPIRED


async def test_a_sweep_and_an_answer_never_deadlock(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """Both lock the job before the question; many concurrent transactions must all succeed."""
    works = [await make.asked(SOON) for _ in range(10)]
    await clock.forward(59.9)
    async with asyncio.timeout(20):
        await asyncio.gather(
            *(_answer(rt, make, work.number, "x") for work in works),
            *(_expire(rt) for _ in range(10)),
            *(_answer(rt, make, work.number, "y") for work in works),
        )
    for work in works:
        question = await rt.questions.get(work.number, 1)
        status = (await rt.read_model.job(work.number)).status
        assert (question.status, status) in (
            (QuestionStatus.ANSWERED, Status.RESUMED),
            (QuestionStatus.EXPIRED, Status.EXPIRED),
            (QuestionStatus.OPEN, Status.WAITING_FOR_INPUT),
        )


async def test_an_extension_waits_for_an_answer_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked(SOON)
    async with first.doing(_answer(first.rt, make, work.number)):
        with pytest.raises(QuestionClosed, match="was already answered by root"):
            await first.then(rt.questions.extend(work.number, 1, 60, make.owner), conn)


async def test_a_question_extended_during_the_sweep_stays_open(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock
) -> None:
    work = await make.asked(SOON)
    async with first.doing(first.rt.questions.extend(work.number, 1, 3600, make.owner)):
        await clock.forward(61)
        assert await _expire(rt) == 0
    assert await _expire(rt) == 0
    assert (await make.answer(work.number, "red")).accepted


async def test_a_sweep_that_waited_for_a_question_checks_it_again(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, conn: Connection
) -> None:
    """The question is extended between the sweep's query and its lock."""
    work = await make.asked(SOON)
    longer = "UPDATE draftsman.job_questions SET expires_at = expires_at + interval '1 hour'"
    async with first.doing(first.rt.db.run_transaction(lambda session: run(session, longer))):
        await clock.forward(61)
        assert await first.then(_expire(rt), conn) == 0
    assert (await make.answer(work.number, "red")).accepted


async def test_an_answer_waits_for_a_cancel_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    async with first.doing(first.rt.job_control.cancel(work.number, make.owner)):
        late = await first.then(_answer(rt, make, work.number), conn)
    assert late.reason == f"{work.name}/1 was already canceled by cli:root"
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED


async def test_a_cancel_waits_for_an_answer_and_ends_the_resumed_job(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.asked()
    async with first.doing(_answer(first.rt, make, work.number)) as answered:
        canceled = await first.then(rt.job_control.cancel(work.number, make.owner), conn)
    assert answered.result().accepted
    assert canceled.status is Status.CANCELED
    assert (await rt.questions.get(work.number, 1)).status is QuestionStatus.ANSWERED


async def test_a_cancel_waits_for_a_denial_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, people: People
) -> None:
    work = await make.asked(GATE)
    deny = Factory(first.rt, make.owner).decide(work.number, False, people.carol)
    async with first.doing(deny):
        with pytest.raises(Refused, match="is already failed"):
            await first.then(rt.job_control.cancel(work.number, make.owner), conn)


async def test_an_answer_to_the_first_question_never_answers_the_second(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    """Typed while /1 was open, it waits until the job's next run asked /2."""
    work = await make.asked()
    await make.answer(work.number, "red")
    next_run = await make.running(work.number)
    changed = QUESTION.model_copy(update={"text": "Which one now?"})
    async with first.doing(first.rt.asking.ask(next_run.lease, changed)) as asked:
        late = await first.then(_answer(rt, make, work.number, "late"), conn)
    assert asked.result() == f"{work.name}/2"
    assert (late.question, late.accepted) == (1, False)
    second = await rt.questions.get(work.number, 2)
    assert second.status is QuestionStatus.OPEN
    assert [a.question for a in (await rt.questions.of_job(work.number))[1]] == [1, 1]
