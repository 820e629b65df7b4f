"""Identical questions of several jobs: asked once, answered together, each with its own event."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest

from draftsman.agent_runs.protocol.agent_messages import AskMessage
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision, QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import EVENTS, GATE, QUESTION, Factory
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.permissions import SHOP, SHOP_NAME, question
from tests.support.statements import value

WIKI = "https://git.example.org/acme/wiki"


async def _asked(
    make: Factory, item: QuestionSpec = QUESTION, actor: Actor | None = None, repo: str = SHOP
) -> ClaimedJob:
    return await make.asked(item, repo=repo, notify=["slack:C1"], actor=actor)


async def _answer(rt: Runtime, work: ClaimedJob, actor: Actor, text: str = "red") -> Verdict:
    response = Response(source_event_id=f"e{next(EVENTS)}", text=text)
    return await rt.questions.answer(work.number, 1, response, actor)


async def _status(rt: Runtime, work: ClaimedJob) -> Status:
    return (await rt.read_model.job(work.number)).status


async def test_an_answer_resolves_the_identical_questions_of_all_jobs(
    rt: Runtime, make: Factory, people: People
) -> None:
    one, two, three = [await _asked(make) for _ in range(3)]
    listed = await rt.questions.open()
    assert [(q.job, q.is_first, q.others) for q in listed] == [
        (one.number, True, [two.number, three.number]),
        (two.number, False, [one.number, three.number]),
        (three.number, False, [one.number, two.number]),
    ]
    verdict = await _answer(rt, two, people.ben)
    assert (verdict.accepted, verdict.also) == (True, (f"{one.name}/1", f"{three.name}/1"))
    for work in (one, two, three):
        assert await _status(rt, work) is Status.RESUMED
        (question,), (answer,) = await rt.questions.of_job(work.number)
        assert (question.resolution or {})["by"] == ["ben"]
        assert (answer.voter, answer.payload) == ("ben", {"value": "red"})
        kinds = [event.kind for event in await rt.read_model.job_events(work.number)]
        assert kinds.count("answer_received") == 1
    again = await _answer(rt, three, people.ben)
    assert (again.accepted, again.also) == (False, ())


async def test_they_are_shown_once_in_a_target_and_the_message_names_the_jobs(
    rt: Runtime, make: Factory, people: People
) -> None:
    one, two = [await _asked(make) for _ in range(2)]
    three = await make.asked(QUESTION, repo=SHOP, notify=["slack:C2"])
    sent = {
        work.number: [
            (d.target, str(d.status))
            for d in await deliveries_of(rt, work.number)
            if d.kind == "question"
        ]
        for work in (one, two, three)
    }
    assert sent == {
        one.number: [("C1", "pending")],
        two.number: [("C1", "superseded")],
        three.number: [("C2", "pending")],
    }


async def test_each_thread_of_a_request_shows_the_question_once(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    """A person who looks at the thread of a request sees what it waits for."""
    threads = ("slack:C1/1.1", "slack:C1/2.2", "slack:C1/2.2")
    one, two, three = [await make.asked(QUESTION, repo=SHOP, notify=[target]) for target in threads]
    statuses = {
        work.number: [
            str(d.status) for d in await deliveries_of(rt, work.number) if d.kind == "question"
        ]
        for work in (one, two, three)
    }
    assert list(statuses.values()) == [["pending"], ["pending"], ["superseded"]]
    await rt.job_control.cancel(two.number, owner)
    left = [d for d in await deliveries_of(rt, three.number) if d.kind == "question"]
    assert [str(d.status) for d in left] == ["superseded", "pending"]


@pytest.mark.parametrize("ending", ["cancel", "expire"])
async def test_the_next_is_posted_when_the_first_closes_alone(
    rt: Runtime, make: Factory, owner: Actor, ending: str
) -> None:
    soon = QUESTION.model_copy(update={"expires_in": 0.000001})
    one = await _asked(make, soon if ending == "expire" else QUESTION)
    two, three = [await _asked(make) for _ in range(2)]
    if ending == "expire":
        assert await rt.sweeps.run_now("expire", owner) == 1
    else:
        await rt.job_control.cancel(one.number, owner)
    statuses = [
        [str(d.status) for d in await deliveries_of(rt, work.number) if d.kind == "question"]
        for work in (two, three)
    ]
    assert statuses == [["superseded", "pending"], ["superseded"]]
    assert (await _answer(rt, two, owner)).also == (f"{three.name}/1",)


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Which other?"},
        {"choices": ("red", "green")},
        {"choices": ({"value": "red", "label": "blue"}, "blue")},
        {"freeform": True},
        {"context": "the first is deprecated"},
        {"action": {"do": "paint"}},
        {"on_expire": "default", "default": "red"},
        {"key": "agent:budget"},
        {"key": "permission:1"},
    ],
)
async def test_other_questions_are_not_answered_together(
    rt: Runtime, make: Factory, people: People, other: dict[str, object]
) -> None:
    changed = QuestionSpec.model_validate(QUESTION.model_dump() | other)
    one = await _asked(make)
    two = await _asked(make, changed)
    assert (await _answer(rt, one, people.ben)).also == ()
    assert await _status(rt, two) is Status.WAITING_FOR_INPUT


async def test_another_key_is_the_same_question_and_another_repository_is_not(
    rt: Runtime, make: Factory, people: People
) -> None:
    keyed = QUESTION.model_copy(update={"key": "choose"})
    one = await _asked(make)
    two = await _asked(make, keyed)
    wiki = await _asked(make, repo=WIKI)
    none = [await make.asked(), await make.asked()]
    assert (await _answer(rt, one, people.ben)).also == (f"{two.name}/1",)
    for work in (wiki, *none):
        assert await _status(rt, work) is Status.WAITING_FOR_INPUT


async def test_an_approval_is_never_merged(rt: Runtime, make: Factory, people: People) -> None:
    one = await _asked(make, GATE)
    two = await _asked(make, GATE)
    assert [q.others for q in await rt.questions.open()] == [[], []]
    yes = Response(source_event_id="yes", decision=Decision.APPROVE)
    assert (await rt.questions.answer(one.number, 1, yes, people.carol)).also == ()
    assert await _status(rt, two) is Status.WAITING_FOR_APPROVAL
    assert GATE.kind is QuestionKind.APPROVAL


async def test_a_person_answers_only_the_jobs_that_are_theirs_to_answer(
    rt: Runtime, make: Factory, people: People
) -> None:
    own = await _asked(make, actor=people.anna)
    other = await _asked(make)
    assert [q.is_first for q in await rt.questions.open()] == [True, True], "two requesters"
    assert (await _answer(rt, own, people.anna)).also == ()
    assert await _status(rt, other) is Status.WAITING_FOR_INPUT
    third = await _asked(make, actor=people.anna)
    assert (await _answer(rt, third, people.ben)).also == (f"{other.name}/1",)


async def test_an_answer_that_came_with_a_request_is_for_its_job_alone(
    rt: Runtime, make: Factory
) -> None:
    waiting = await _asked(make)
    work = await make.running(repo=SHOP)
    await rt.asking.ask(work.lease, QUESTION, answer="red", invoker="root")
    assert await _status(rt, work) is Status.RESUMED
    assert await _status(rt, waiting) is Status.WAITING_FOR_INPUT


@pytest.mark.parametrize("only", [False, True])
async def test_a_pending_decision_takes_effect_on_all_when_it_is_applied(
    rt: Runtime, make: Factory, owner: Actor, only: bool
) -> None:
    one = await _asked(make)
    two = await _asked(make)
    response = Response(source_event_id="key", text="red")
    held = await rt.pending_decisions.answer(one.number, 1, response, owner, 5, only=only)
    assert not isinstance(held, Verdict)
    assert await _status(rt, two) is Status.WAITING_FOR_INPUT
    effect = await rt.pending_decisions.apply(held, early=True)
    assert isinstance(effect, Verdict)
    assert effect.also == (() if only else (f"{two.name}/1",))
    assert await _status(rt, two) is (Status.WAITING_FOR_INPUT if only else Status.RESUMED)


async def test_identical_questions_are_folded_before_the_limit(
    rt: Runtime, make: Factory, people: People
) -> None:
    folded = [await _asked(make) for _ in range(4)]
    own = await _asked(make, actor=people.anna)
    other = await _asked(make, QUESTION.model_copy(update={"text": "Another?"}))
    shown = partial(rt.questions.open, limit=3)
    read = await shown(fold_for=people.ben)
    assert [q.job for q in read] == [folded[0].number, other.number]
    assert len(read[0].others) == 4
    assert set(read[0].other_requesters) == {read[0].requester, people.anna.voter}
    anna = await shown(fold_for=people.anna)
    assert [q.job for q in anna] == [folded[0].number, own.number, other.number], "and her own"
    last = read[0]
    after = await shown(after=(last.expires_at, last.job, last.ordinal), fold_for=people.anna)
    assert [q.job for q in after] == [own.number, other.number], "the next page has none twice"
    assert len(await shown()) == 3, "unfolded for programs"
    await rt.job_control.cancel(folded[0].number, make.owner)
    assert [q.job for q in await shown(fold_for=people.ben)] == [folded[1].number, other.number]


async def test_a_person_who_may_answer_all_questions_has_an_identical_question_once(
    rt: Runtime, make: Factory, people: People
) -> None:
    first = await _asked(make, actor=people.anna)
    _own = await _asked(make)
    assert [q.job for q in await rt.questions.open(fold_for=make.owner)] == [first.number]


async def test_a_question_that_others_may_answer_or_that_is_due_sooner_is_not_folded(
    rt: Runtime, make: Factory, people: People
) -> None:
    delegated, late, soon = [await _asked(make) for _ in range(3)]
    shown = partial(rt.questions.open, fold_for=people.ben)
    await rt.questions.extend(late.number, 1, 60, make.owner)
    await rt.acknowledgments.delegate(delegated.number, 1, make.owner, "ben", 600)
    assert [q.job for q in await shown()] == [delegated.number, soon.number]


async def test_questions_in_repositories_of_two_hosts_are_not_identical(
    rt: Runtime, make: Factory, people: People
) -> None:
    one = await _asked(make)
    other = await _asked(make, repo=SHOP.replace("git.example.org", "github.com"))
    assert (await _answer(rt, one, people.ben)).also == ()
    assert await _status(rt, other) is Status.WAITING_FOR_INPUT


PERMISSION: Final = ("allow once", "deny", "allow for this job")


@cases(
    "what, fields",
    [
        (
            "a command of an agent of the plain protocol, under a key of its own",
            {"command": "pytest"},
        ),
        ("a command that a rule could never allow", {"command": "rm -rf /"}),
        ("a command that the agent shows, but does not declare", {}),
        ("choices of a permission request", {"text": "May I?", "choices": PERMISSION}),
        ("a command in the text of other choices", {"choices": ("yes", "no")}),
        ("declared alone", {"text": "May I?", "choices": ("yes", "no"), "command": "pytest"}),
    ],
)
async def test_a_press_on_a_permission_request_counts_for_one_job(
    rt: Runtime, make: Factory, people: People, what: str, fields: dict[str, Any]
) -> None:
    choices = fields.get("choices", PERMISSION)
    asked = {"id": "1", "key": "may-i", "text": "May I run\n$ pytest", **fields}
    asked["choices"] = [{"value": choice} for choice in choices]
    spec = AskMessage.model_validate(asked).question()
    one, two = [await _asked(make, spec) for _ in range(2)]
    verdict = await _answer(rt, one, people.ben, choices[0])
    assert (verdict.accepted, verdict.also) == (True, ()), what
    assert await _status(rt, two) is Status.WAITING_FOR_INPUT, what


async def test_a_press_teaches_a_rule_once(rt: Runtime, make: Factory, people: People) -> None:
    works = [await _asked(make, question("pytest -q tests")) for _ in range(3)]
    for work in works[:2]:
        response = Response(source_event_id="press", text="allow once")
        verdict = await rt.questions.answer(work.number, 1, response, people.ben)
        assert verdict.accepted
    async with rt.db.connection() as conn:
        propose = (
            "SELECT draftsman.propose_rule(%s, ARRAY['pytest', '-q', 'tests'], 2, 60, 'system')"
        )
        assert await value(conn, propose, (SHOP_NAME,)) is None
        await _answer(rt, works[2], people.ben, "allow once")
        assert await value(conn, propose, (SHOP_NAME,)) is not None
