"""Questions of handlers: a run parks, frees its slot, and continues with the answer."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.questions.question import Answered, NoAnswer
from draftsman.runtime import Runtime
from draftsman.worker import leader
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.handlers.test_context import context
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import (
    BlockingHandler,
    before_deadline,
    event_kinds,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)

S = Status


@pytest.fixture(autouse=True)
def _quick_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "TICK", 0.1)


async def test_a_question_parks_the_run_and_frees_its_slot(rt: Runtime, make: Factory) -> None:
    answers: list[object] = []

    async def asks(ctx: RunContext) -> Outcome:
        answers.append(await ctx.ask("pick", "Which?", choices=["red", "blue"], freeform=True))
        answers.append(await ctx.ask("note", "Anything else?", freeform=True))
        return Done({})

    handler = BlockingHandler()
    number = await make.queued(type="asks", queue="default")
    async with running_worker(runtime_with(rt), {"asks": asks, "noop": handler}, slots=1):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        second_job = await make.queued(queue="default")
        assert (await handler.next()).job.number == second_job
        await make.answer(number, "blue")
        assert (await rt.read_model.job(number)).status is S.RESUMED
        handler.go.set()
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "no, thanks", n=2)
        await wait_for_end(rt, number)
    first, repeated, second = answers
    assert first == repeated
    assert isinstance(first, Answered)
    assert isinstance(second, Answered)
    assert (first.value, first.text, first.outcome, first.via) == (
        "blue",
        None,
        "answered",
        "person",
    )
    assert (first.by, first.at is not None) == ((make.owner.voter,), True)
    assert (second.value, second.text) == (None, "no, thanks")
    assert [run.status for run in await rt.read_model.runs(number)] == [
        "parked",
        "parked",
        "completed",
    ]


async def test_the_same_key_with_another_text_is_a_new_question(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        text = "Deploy it?" if ctx.job.run == 1 else "Deploy it, and the other one?"
        answer = await ctx.ask("sure", text, choices=["yes", "no"])
        assert isinstance(answer, Answered)
        return Done({"answer": answer.value})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        await wait_for_question(rt, number, 2)
        await make.answer(number, "no", n=2)
        job = await wait_for_end(rt, number)
    assert job.result == {"answer": "no"}
    assert [question.status for question in (await rt.questions.of_job(number))[0]] == [
        "superseded",
        "answered",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"on_expire": "continue"}, NoAnswer()),
        ({"on_expire": "default", "default": "a"}, ("a", "policy")),
    ],
)
async def test_an_expired_question_of_a_handler_follows_its_rule(
    rt: Runtime, make: Factory, options: dict[str, Any], expected: object
) -> None:
    answers: list[Answered | NoAnswer] = []

    async def handler(ctx: RunContext) -> Outcome:
        answers.append(
            await ctx.ask("pick", "Which?", choices=["a", "b"], expires_in=0.000001, **options)
        )
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}, leader=True):
        job = await wait_for_end(rt, number)
    assert (job.status, len(answers)) == (S.COMPLETED, 1)
    [answer] = answers
    result = (answer.value, answer.via) if isinstance(answer, Answered) else answer
    assert result == expected
    assert answer.outcome == ("expired" if isinstance(answer, NoAnswer) else "answered")


async def test_a_question_that_expires_fails_the_job(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        await ctx.ask("pick", "Which?", choices=["a"], expires_in=0.000001)
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}, leader=True):
        assert (await wait_for_end(rt, number)).status is S.EXPIRED


async def gate(ctx: RunContext) -> Outcome:
    decided = await ctx.approve("gate", "Deploy?", action={"to": "live"}, on_deny="continue")
    return Done({"approved": decided.approved, "reason": decided.reason})


@pytest.mark.parametrize("yes", [True, False])
async def test_an_approval_returns_the_decision(
    rt: Runtime, make: Factory, people: People, yes: bool
) -> None:
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": gate}):
        await wait_for_status(rt, number, S.WAITING_FOR_APPROVAL)
        await make.decide(number, yes, people.carol, reason="because")
        job = await wait_for_end(rt, number)
    assert job.status is S.COMPLETED
    assert job.result == {"approved": yes, "reason": "because"}


async def test_a_denied_approval_fails_the_job_unless_it_continues(
    rt: Runtime, make: Factory, people: People
) -> None:
    ran = []

    async def handler(ctx: RunContext) -> Outcome:
        ran.append(ctx.job.run)
        await ctx.approve("gate", "Deploy?")
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_APPROVAL)
        await make.decide(number, False, people.dave, reason="not today")
        job = await wait_for_end(rt, number)
    assert (job.status, ran) == (S.FAILED, [1])
    assert job.last_error == "denied by dave: not today"


async def test_another_action_needs_another_approval(
    rt: Runtime, make: Factory, people: People
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        await ctx.approve("gate", "Apply this?", action={"digest": ctx.job.run})
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_APPROVAL)
        await make.decide(number, True, people.carol)
        await wait_for_question(rt, number, 2)
        assert (await rt.read_model.job(number)).status is S.WAITING_FOR_APPROVAL


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"text": "Which?"}, "a question needs choices, or freeform=True, or both"),
        ({"text": "", "freeform": True}, "question 'pick': text: must not be empty"),
        (
            {"text": "W?", "choices": ["a", "A"]},
            "two choices have the same value; make them differ",
        ),
        (
            {"text": "W?", "choices": ["a"], "default": "a"},
            "a default requires on_expire='default'",
        ),
        (
            {"text": "W?", "choices": ["a"], "on_expire": "default", "default": "b"},
            "the default 'b' is not among the choices",
        ),
        ({"text": "W?", "choices": ["a"], "on_expire": "maybe"}, "on_expire: must be"),
        ({"text": "W?", "choices": ["a"], "expires_in": -1}, "expires_in: must be "),
    ],
)
async def test_an_invalid_question_is_refused_in_one_line(
    rt: Runtime, make: Factory, question: dict[str, Any], message: str
) -> None:
    ctx = context(rt, await make.running())
    with pytest.raises(UsageError) as raised:
        await ctx.ask("pick", **question)
    assert message in str(raised.value)
    assert str(raised.value).startswith("question 'pick': ")
    assert "\n" not in str(raised.value)
    assert await rt.questions.open(ctx.job.number) == []


async def test_a_question_with_a_lost_reply_is_asked_once(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        answer = await ctx.ask("pick", "Which?", choices=["a", "b"])
        return Done({"answer": getattr(answer, "value", None)})

    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db), {"noop": handler}),
    ):
        proxy.drop_reply_to(b"COMMIT")
        number = await make.queued(queue="default")
        await before_deadline(proxy.lost.wait())
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "b")
        job = await wait_for_end(rt, number)
    assert (job.result, job.attempts) == ({"answer": "b"}, 0)
    assert (await event_kinds(rt, number)).count("needs_input") == 1


async def question_and_gate(ctx: RunContext) -> Outcome:
    answer = await ctx.ask("pick", "Which?", choices=["red", "blue"])
    assert isinstance(answer, Answered)
    await ctx.approve("gate", "Deploy?")
    return Done({"answer": answer.value})


@pytest.mark.parametrize(
    ("prepared", "waits"),
    [
        ({"pick": "blue", "gate": "approve"}, S.WAITING_FOR_APPROVAL),
        ({"pick": "green"}, S.WAITING_FOR_INPUT),
        ({"other": "blue"}, S.WAITING_FOR_INPUT),
    ],
)
async def test_an_answer_in_the_request_is_used_if_valid_and_never_for_an_approval(
    rt: Runtime, make: Factory, prepared: dict[str, str], waits: Status
) -> None:
    number = await make.queued(queue="default", overrides={"answers": prepared})
    async with running_worker(runtime_with(rt), {"noop": question_and_gate}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT, S.WAITING_FOR_APPROVAL)
        await wait_for_question(rt, number, 2 if waits is S.WAITING_FOR_APPROVAL else 1)
        assert (await rt.read_model.job(number)).status is waits
    _, answers = await rt.questions.of_job(number)
    assert [answer.payload for answer in answers] == (
        [{"value": "blue"}] if prepared.get("pick") == "blue" else []
    )
