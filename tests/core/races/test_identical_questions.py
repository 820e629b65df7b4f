"""Identical questions that are asked, answered and closed at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.questions.answer import Verdict
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import deliveries_of
from tests.support.permissions import SHOP
from tests.support.races import FirstSession
from tests.support.statements import rows

HERE: dict[str, Any] = {"repo": SHOP, "notify": ["slack:C1"]}


async def _answer(rt: Runtime, make: Factory, work: ClaimedJob, text: str = "red") -> Verdict:
    response = Response(source_event_id=f"{work.name} {text}", text=text)
    return await rt.questions.answer(work.number, 1, response, make.owner)


async def _posted(rt: Runtime, work: ClaimedJob) -> list[str]:
    found = await deliveries_of(rt, work.number)
    return [str(d.status) for d in found if d.kind == "question"]


async def _status(rt: Runtime, work: ClaimedJob) -> Status:
    return (await rt.read_model.job(work.number)).status


async def test_a_fourth_question_that_arrives_while_the_answer_commits_is_asked_itself(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    three = [await make.asked(**HERE) for _ in range(3)]
    fourth = await make.running(**HERE)
    async with first.doing(_answer(first.rt, make, three[0])) as answer:
        await first.then(rt.asking.ask(fourth.lease, QUESTION), conn)
    assert len(answer.result().also) == 2
    assert [await _status(rt, work) for work in three] == [Status.RESUMED] * 3
    assert await _status(rt, fourth) is Status.WAITING_FOR_INPUT
    assert await _posted(rt, fourth) == ["pending"], "it is not hidden behind a closed question"


async def test_an_answer_waits_for_a_fourth_question_and_leaves_it_posted(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    three = [await make.asked(**HERE) for _ in range(3)]
    fourth = await make.running(**HERE)
    async with first.doing(first.rt.asking.ask(fourth.lease, QUESTION)):
        verdict = await first.then(_answer(rt, make, three[0]), conn)
    assert verdict.accepted
    assert [await _status(rt, work) for work in three] == [Status.RESUMED] * 3
    left = await _status(rt, fourth)
    if left is Status.WAITING_FOR_INPUT:
        assert await _posted(rt, fourth) == ["superseded", "pending"]
    else:
        assert f"{fourth.name}/1" in verdict.also


async def test_the_second_of_two_answers_to_identical_questions_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    one, two = [await make.asked(**HERE) for _ in range(2)]
    async with first.doing(_answer(first.rt, make, two)) as answer:
        second = await first.then(_answer(rt, make, one, "blue"), conn)
    assert answer.result().also == (f"{one.name}/1",)
    assert (second.accepted, second.reason) == (False, f"{one.name}/1 was already answered by root")


async def test_two_workers_that_ask_the_same_at_once_post_it_once(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    one, two = [await make.running(**HERE) for _ in range(2)]
    async with first.doing(first.rt.asking.ask(two.lease, QUESTION)):
        await first.then(rt.asking.ask(one.lease, QUESTION), conn)
    assert (await _posted(rt, two), await _posted(rt, one)) == (["pending"], ["superseded"])
    listed = await rt.questions.open(fold_for=make.owner)
    assert [(question.job, question.others) for question in listed] == [(two.number, [one.number])]
    verdict = await _answer(rt, make, one)
    assert verdict.also == (f"{two.name}/1",)


async def test_workers_that_ask_something_else_do_not_wait_for_each_other(
    make: Factory, rt: Runtime, first: FirstSession
) -> None:
    one, two = [await make.running(**HERE) for _ in range(2)]
    other = QUESTION.model_copy(update={"text": "Which other one?"})
    async with first.doing(first.rt.asking.ask(two.lease, QUESTION)):
        await rt.asking.ask(one.lease, other)
        assert await _status(rt, one) is Status.WAITING_FOR_INPUT


async def test_a_cancel_of_the_first_while_the_next_asks_leaves_it_posted(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    one = await make.asked(**HERE)
    two = await make.running(**HERE)
    async with first.doing(first.rt.job_control.cancel(one.number, make.owner)):
        await first.then(rt.asking.ask(two.lease, QUESTION), conn)
    assert await _posted(rt, two) == ["pending"]


async def test_a_cancel_waits_for_the_next_that_asks_and_posts_it(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    one = await make.asked(**HERE)
    two = await make.running(**HERE)
    async with first.doing(first.rt.asking.ask(two.lease, QUESTION)):
        await first.then(rt.job_control.cancel(one.number, make.owner), conn)
    assert await _posted(rt, two) == ["superseded", "pending"]


@pytest.mark.parametrize("asked", [2, 12])
async def test_another_question_locks_and_reads_no_more_rows_the_more_are_identical(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection, asked: int
) -> None:
    for _ in range(asked):
        await make.asked(**HERE)
    another = await make.running(**HERE)
    async with first.doing(first.rt.asking.ask(another.lease, QUESTION)), conn.transaction():
        ((free,),) = await rows(
            conn,
            "SELECT count(*) FROM (SELECT FROM draftsman.job_states"
            " FOR NO KEY UPDATE SKIP LOCKED) s",
        )
    assert asked + 1 - free == 2, "its own job, and the first that asks the same"
    ((shown,),) = await rows(conn, "SELECT count(*) FROM draftsman.identical_questions WHERE shown")
    assert shown == 1
