"""Payloads of events: ids of questions, answers and checkpoints, and summaries."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.core.worker.workers import last_event
from tests.support.statements import value

LATEST = "SELECT max(id) FROM draftsman.job_checkpoints WHERE job = %s"


async def payload(rt: Runtime, job: int, kind: str) -> dict[str, Any]:
    """Return the payload of the newest event of a kind."""
    return (await last_event(rt, job, kind)).payload


@pytest.mark.parametrize(("item", "kind"), [(QUESTION, "needs_input"), (GATE, "needs_approval")])
async def test_a_question_and_its_answer_name_each_other_and_the_checkpoint(
    rt: Runtime, make: Factory, people: People, item: QuestionSpec, kind: str
) -> None:
    work = await make.running()
    for stage in (1, 2):
        await rt.checkpoints.save(work.lease, {"stage": stage})
    async with rt.db.connection() as conn:
        checkpoint = await value(conn, LATEST, (work.number,))
    await rt.asking.ask(work.lease, item)
    asked = await payload(rt, work.number, kind)
    assert (asked["question"], asked["checkpoint"]) == (1, checkpoint)
    if item is GATE:
        await make.decide(work.number, True, people.carol)
    else:
        assert (await make.answer(work.number, "red")).resolved
    _, [answer] = await rt.questions.of_job(work.number)
    for event in ("answer_received", "job_resumed"):
        found = await payload(rt, work.number, event)
        assert (found["question"], found["answer"]) == (1, answer.id), event
        assert found["checkpoint"] == checkpoint, event
        assert (found["source"], found["responder"]) == (answer.source, answer.responder_id), event


async def test_a_question_without_a_checkpoint_names_none(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    await rt.asking.ask(work.lease, QUESTION)
    assert "checkpoint" not in await payload(rt, work.number, "needs_input")


async def test_an_expired_job_names_its_question(rt: Runtime, make: Factory) -> None:
    number = await make.expired()
    assert (await payload(rt, number, "job_expired"))["question"] == 1


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"summary": "did it"}, {"summary": "did it"}),
        ({"summary": "x" * 3000}, {"summary": "x" * 2000}),
        ({"rows": 3}, {}),
    ],
)
async def test_a_completed_job_has_its_summary(
    rt: Runtime, make: Factory, result: dict[str, Any], expected: dict[str, Any]
) -> None:
    work = await make.running()
    await rt.settlement.outcome(work, Done(result))
    assert await payload(rt, work.number, "job_completed") == expected
