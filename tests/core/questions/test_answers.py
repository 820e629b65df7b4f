"""Answers: the first valid answer resumes the job; the others are stored with a reason."""

from __future__ import annotations

import pytest

from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.people.spans import ActorRef
from draftsman.questions.question import Decision, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock


async def test_an_answer_resumes_the_job_and_names_its_responder(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    verdict = await make.answer(work.number, "blue", people.ben)
    question = await rt.questions.get(work.number, 1)
    expected = {"outcome": "answered", "via": "person", "value": "blue", "by": ["ben"]}
    assert (verdict.accepted, verdict.resolved, verdict.name) == (True, True, f"{work.name}/1")
    assert verdict.resolution == question.resolution == expected
    assert verdict.job_status is Status.RESUMED
    assert question.status is QuestionStatus.ANSWERED
    assert question.answered_at is not None
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_an_answer_is_stored_with_its_responder_and_channel(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    response = Response(source_event_id="1700.1", text="blue")
    await rt.questions.answer(work.number, 1, response, people.on("slack", "ben"))
    _, (answer,) = await rt.questions.of_job(work.number)
    assert (answer.source, answer.source_event_id) == ("slack", "1700.1")
    assert (answer.responder_id, answer.responder_display_name, answer.voter) == (
        "U-BEN",
        "Ben",
        "ben",
    )
    assert (answer.payload, answer.accepted, answer.reason) == ({"value": "blue"}, True, None)


CHOICES = QuestionSpec.model_validate(
    {
        "key": "k",
        "text": "?",
        "choices": [{"value": "2", "label": "One"}, {"value": "b", "label": "Two words"}, "1"],
    }
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("b", "b"),
        (" B ", "b"),
        ("two WORDS", "b"),
        ("One", "2"),
        ("1", "1"),
        ("2", "2"),
        ("3", "1"),
    ],
)
async def test_a_choice_is_named_by_value_then_label_then_number(
    make: Factory, text: str, value: str
) -> None:
    work = await make.asked(CHOICES)
    verdict = await make.answer(work.number, text)
    assert verdict.resolution is not None
    assert verdict.resolution["value"] == value


@pytest.mark.parametrize("text", ["green", "0", "4", "", "  ", "b\n1", "One?"])
async def test_an_invalid_choice_is_refused_with_the_choices_and_not_stored(
    make: Factory, rt: Runtime, text: str
) -> None:
    work = await make.asked(CHOICES)
    with pytest.raises(UsageError, match="choose: 1 One, 2 Two words, 3 1"):
        await make.answer(work.number, text)
    assert (await rt.questions.of_job(work.number))[1] == []
    assert (await make.answer(work.number, "b")).accepted


async def test_free_text_is_an_answer_where_it_is_allowed(make: Factory, rt: Runtime) -> None:
    work = await make.asked(QUESTION.model_copy(update={"freeform": True}))
    verdict = await make.answer(work.number, "  neither, thanks ")
    assert verdict.resolution is not None
    assert verdict.resolution["text"] == "neither, thanks"
    assert "value" not in verdict.resolution


async def test_a_repeated_event_counts_once_and_gets_the_same_verdict(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    response = Response(source_event_id="click", text="red")
    first = await rt.questions.answer(work.number, 1, response, people.ben)
    second_verdict = await rt.questions.answer(work.number, 1, response, people.ben)
    assert (first.duplicate, second_verdict.duplicate) == (False, True)
    assert (second_verdict.accepted, second_verdict.resolution) == (True, first.resolution)
    assert len((await rt.questions.of_job(work.number))[1]) == 1


async def test_a_refused_event_sent_again_is_refused_as_before(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    response = Response(source_event_id="click", text="red")
    first = await rt.questions.answer(work.number, 1, response, people.carol)
    second_verdict = await rt.questions.answer(work.number, 1, response, people.carol)
    assert not first.accepted
    assert (second_verdict.accepted, second_verdict.reason, second_verdict.duplicate) == (
        False,
        first.reason,
        True,
    )
    assert first.reason_spans[0] == ActorRef("cli:carol", "Carol")
    assert second_verdict.reason_spans == first.reason_spans


async def test_a_later_answer_is_stored_and_refused(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    await make.answer(work.number, "red", people.ben)
    late = await make.answer(work.number, "blue", people.ben)
    assert (late.accepted, late.resolved) == (False, True)
    assert late.reason == f"{work.name}/1 was already answered by ben"
    assert late.resolution is not None
    assert late.resolution["value"] == "red"
    answers = (await rt.questions.of_job(work.number))[1]
    assert [(answer.accepted, answer.reason) for answer in answers] == [
        (True, None),
        (False, late.reason),
    ]
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.payload["reason"]) == ("answer_refused", late.reason)


async def test_a_later_invalid_choice_is_stored_and_refused(make: Factory, rt: Runtime) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    late = await make.answer(work.number, "please wait")
    assert not late.accepted
    _, (_, answer) = await rt.questions.of_job(work.number)
    assert answer.payload == {"text": "please wait", "late": True}


async def test_an_answer_after_the_expiry_is_late_before_any_sweep(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 60.0}))
    await clock.forward(61)
    late = await make.answer(work.number, "red")
    assert (late.accepted, late.resolved) == (False, False)
    assert late.reason == f"{work.name}/1 expired before this answer arrived"
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_INPUT


async def test_an_answer_to_a_canceled_job_is_stored_and_refused(
    make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    await rt.job_control.cancel(work.number, make.owner)
    verdict = await make.answer(work.number, "red")
    assert verdict.reason == f"{work.name}/1 was already canceled by cli:root"
    assert verdict.reason_spans == (f"{work.name}/1 was already canceled by ", ActorRef("cli:root"))
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED


async def test_an_unauthorized_answer_is_stored_and_refused_with_the_permitted_people(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.asked()
    for actor in (people.carol, people.on("slack", "stranger")):
        verdict = await make.answer(work.number, "red", actor)
        assert not verdict.accepted
        assert verdict.reason is not None
        assert verdict.reason.endswith("allowed: ben")
    assert len((await rt.questions.of_job(work.number))[1]) == 2
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_INPUT


async def test_an_invoker_can_answer_only_questions_of_own_jobs(
    make: Factory, rt: Runtime, people: People
) -> None:
    own = await make.running(await make.queued(actor=people.anna))
    other = await make.running()
    for work in (own, other):
        await rt.asking.ask(work.lease, QUESTION)
    slack = people.on("slack", "anna")
    assert (await make.answer(own.number, "red", slack)).accepted
    assert not (await make.answer(other.number, "red", slack)).accepted


async def test_a_decision_is_not_an_answer_and_free_text_is_not_a_decision(
    make: Factory, rt: Runtime, people: People
) -> None:
    question = await make.asked()
    gate = await make.asked(GATE)
    with pytest.raises(UsageError, match="draftsman answer"):
        await make.decide(question.number, True, people.ben)
    for text in ("approve", "yes", "true", "1"):
        with pytest.raises(UsageError, match=r"draftsman approve\|deny"):
            await make.answer(gate.number, text, people.carol)
    assert (await rt.questions.of_job(gate.number))[1] == []
    assert (await rt.read_model.job(gate.number)).status is Status.WAITING_FOR_APPROVAL


async def test_an_answer_applies_to_the_named_question_only(make: Factory, rt: Runtime) -> None:
    first = await make.asked()
    second = await make.asked()
    assert (await make.answer(second.number, "red")).accepted
    assert (await rt.questions.get(first.number, 1)).status is QuestionStatus.OPEN
    next_run = await make.running(second.number)
    await rt.asking.ask(next_run.lease, QUESTION.model_copy(update={"key": "next"}))
    late = await make.answer(second.number, "blue", n=1)
    assert not late.accepted
    assert (await rt.questions.get(second.number, 2)).status is QuestionStatus.OPEN


async def test_a_vote_repeated_after_a_cancel_reports_the_closed_approval(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.asked(GATE.model_copy(update={"quorum": 2}))
    vote = Response(source_event_id="click", decision=Decision.APPROVE)
    first = await rt.questions.answer(work.number, 1, vote, people.carol)
    await rt.job_control.cancel(work.number, make.owner)
    second_verdict = await rt.questions.answer(work.number, 1, vote, people.carol)
    assert (first.accepted, first.resolved, first.duplicate) == (True, False, False)
    assert (second_verdict.accepted, second_verdict.resolved, second_verdict.duplicate) == (
        True,
        True,
        True,
    )
    assert second_verdict.resolution is not None
    assert second_verdict.resolution["outcome"] == "canceled"
