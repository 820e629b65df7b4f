"""Requests and answers in the comments of an issue: exactly once, by permitted people only."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast

import pytest

from draftsman.deliveries.target import parse as parse_target
from draftsman.errors import Failure
from draftsman.forges import store as forges
from draftsman.forges.api.connection import forge_at
from draftsman.forges.forge_event import EventKind, ForgeEvent
from draftsman.formats.times import spelled_time
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import QuestionKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman.settings.forges import ForgeSettings
from draftsman_bots.forges.context import EventContext
from draftsman_bots.forges.events import classify
from draftsman_bots.forges.service import ForgeService
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.fake.faults import Fault
from draftsman_testing.forges.world import at_second
from draftsman_testing.people import People
from tests.bots.forges.issues import LABEL, Issue, comment
from tests.support.cases import cases

GATE: Final = QuestionSpec(key="gate", kind=QuestionKind.APPROVAL, text="Go?", approvers=("carol",))


async def test_a_label_makes_one_job_whose_comment_answers(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    """Each event three times; a second request joins; strangers get one reply."""
    other = replace(LABEL, label="bug", key="label:7:bug")
    assert await issue.on(other) == "ignored"
    assert [await issue.on(LABEL) for _ in range(3)] == ["submitted"] * 3
    (job,) = await rt.read_model.jobs()
    found = await rt.read_model.job(job.number)
    assert (found.source, found.invoker_id, found.title) == ("forge", "anna", "Refunds")
    assert found.url == f"{issue.place.fake.world.base}/acme/pay/issues/7"
    assert found.agent_request.text == "They are rounded twice, see @ben"
    assert found.payload["repo"]["source"] == parse(issue.place.fake.url).url
    (status,) = await issue.delivered(job.number)
    assert f"**D-{job.number}** **Refunds**" in status
    for number, text in enumerate(["@draftsman also the tax", "/draftsman also the tax"], 60):
        assert await issue.on(comment(text, "anna", number)) == "submitted"
    assert await issue.on(comment("/draftsmanship is the tax", "anna", 62)) == "ignored"
    assert len(await rt.read_model.jobs()) == 1
    assert "is still queued" in (await issue.delivered(job.number))[-1]
    stranger = comment("@draftsman fix this", "mallory", 3)
    assert [await issue.on(stranger) for _ in range(2)] == ["refused"] * 2
    assert await issue.on(comment("fix this", "anna", 4)) == "ignored"
    assert await issue.on(comment("@draftsman fix this", "draftsman-bot", 5, is_bot=True)) == (
        "ignored"
    )
    texts = await issue.delivered(job.number)
    assert len(texts) == 4
    assert "draftsman people set NAME --account forge:acme:mallory" in texts[-1]


async def test_a_label_that_is_given_again_makes_another_job_with_the_text_of_its_time(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    """Webhooks and polls of a label are one request; the labeler counts, not the sender."""
    world = issue.place.fake.world

    def webhook(second: int, text: str, sender: str = "Anna") -> ForgeEvent:
        at = datetime.fromisoformat(at_second(second))
        key = f"label:7:fix it:{at_second(second)}"
        return replace(LABEL, key=key, at=at, text=text, author=sender)

    async def poll() -> ForgeEvent:
        settings = issue.rt.settings
        source = forge_at(settings, "acme", "acme/pay").events()
        (event,) = await source.labeled_issues("fix it")
        return event

    world.labelers += [("fix it", "anna")]
    first = webhook(1, "as labeled")
    world.issue = ("Refunds", "edited by mallory")
    assert [await issue.on(first) for _ in range(2)] == ["submitted"] * 2
    shown = {"number": 7, "title": "Refunds", "body": "edited by mallory", "updated_at": "later"}
    world.talk.issues.append(shown | {"labels": [{"name": "fix it"}]})
    polled = await poll()
    assert (polled.key, polled.author) == ("label:7:fix it:#1", "anna")
    assert await issue.on(polled) == "submitted"
    assert await issue.on(webhook(9, "another label was given", "eve")) == "submitted"
    (job,) = await rt.read_model.jobs()
    found = await rt.read_model.job(job.number)
    assert (found.invoker_id, found.agent_request.text) == ("anna", "as labeled")
    texts = await issue.delivered(job.number)
    note = f"The issue was edited since it was labeled; D-{job.number} has the text of that time."
    assert [note in text for text in texts] == [False, True]
    await rt.job_control.cancel(job.number, make.owner)
    world.labelers += [("fix it", ""), ("fix it", "anna")]
    again = webhook(3, "edited by mallory")
    assert [await issue.on(event) for event in (first, again, again, await poll())] == (
        ["submitted"] * 4
    )
    assert len(await rt.read_model.jobs()) == 2
    newest = await rt.read_model.job(job.number + 1)
    assert newest.agent_request.text == "edited by mallory"
    assert not any("was edited" in text for text in (await issue.delivered(newest.number))[-1:])


async def test_questions_are_answered_by_permitted_people(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    work = await make.asked(QUESTION, notify=(issue.place.target,))
    name = f"D-{work.number}/1"
    await issue.delivered(work.number)
    chat = "I like red more, but who knows"
    for number, (text, author, outcome) in enumerate(
        [
            (chat, "ben", "ignored"),
            ("red", "mallory", "ignored"),
            ("/answer D-99/1 red", "ben", "refused"),
            (f"/answer {name} red", "mallory", "refused"),
            (f"/approve {name}", "ben", "refused"),
            ("> 1\n\nred", "ben", "answered"),
            (f"/answer {name} blue", "ben", "answered"),
        ],
        10,
    ):
        assert await issue.on(comment(text, author, number)) == outcome, text
    question = await rt.questions.get(work.number, 1)
    assert (question.resolution or {}) | {"value": "red", "by": ["ben"]} == question.resolution
    texts = await issue.delivered(work.number)
    assert f"{name} was answered by ben: red" in texts[1]
    assert issue.place.invites not in texts[1]
    assert "D-99/1 was not asked here." in texts[2]
    assert "this account is not linked to a person" in texts[3]
    assert "needs text or a choice" in texts[4]
    assert len(texts) == 6, texts[5:]
    (again,) = texts[5:]
    assert "red" in again


async def test_comments_delay_the_reminders_of_a_question(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    work = await make.asked(QUESTION, notify=(issue.place.target,))
    await issue.delivered(work.number)
    for number, (text, author, outcome) in enumerate(
        [
            ("/ack 2h", "ben", "answered"),
            (f"/snooze D-{work.number}/1", "ben", "answered"),
            ("/delegate anna", "ben", "refused"),
            ("/ack", "mallory", "refused"),
        ],
        30,
    ):
        assert await issue.on(comment(text, author, number)) == outcome, text
    delays = await rt.acknowledgments.delays(work.number, 1)
    assert [(item.person, item.acknowledged) for item in delays] == [("ben", True), ("ben", False)]
    assert "acknowledged until" in "\n".join(await issue.delivered(work.number))


async def test_an_unknown_command_answers_no_question(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    spec = QUESTION.model_copy(update={"freeform": True})
    work = await make.asked(spec, notify=(issue.place.target,))
    await issue.delivered(work.number)
    outcomes = [
        await issue.on(comment(text, "ben", number))
        for number, text in enumerate(["@draftsman /paus now", "/lgtm"], 70)
    ]
    assert outcomes == ["refused", "ignored"], "ben may not request jobs"
    assert (await rt.questions.get(work.number, 1)).status == "open"
    assert await issue.on(comment("@draftsman later", "ben", 72)) == "answered"


async def test_a_comment_shows_the_new_expiry_and_delegate(
    issue: Issue, rt: Runtime, make: Factory, people: People
) -> None:
    gate = GATE.model_copy(update={"approvers": ("carol", "dave"), "expires_in": 3600.0})
    work = await make.asked(gate, notify=(issue.place.target,))
    await issue.delivered(work.number)
    extended = await rt.questions.extend(work.number, 1, 86_400.0, people.olga)
    assert extended is not None
    await rt.acknowledgments.delegate(work.number, 1, people.carol, "dave", 3600.0)
    _, asked, notice = await issue.delivered(work.number)
    assert f"Expires at {spelled_time(extended)}." in asked
    assert "carol asked dave to answer, until" in asked
    assert f"D-{work.number}/1: carol asked dave to answer" in notice


async def test_an_approval_counts_only_from_its_approver(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    work = await make.asked(GATE, notify=(issue.place.target,))
    _, asked = await issue.delivered(work.number)
    assert "For @carol" in asked
    assert f"`/approve D-{work.number}/1`" in asked
    assert await issue.on(comment("approve", "ben", 20)) == "refused"
    denied = comment("deny because it is Friday", "carol", 21)
    assert [await issue.on(denied) for _ in range(2)] == ["answered"] * 2
    job = await rt.read_model.job(work.number)
    assert (job.status, job.last_error) == ("failed", job.last_error)
    texts = await issue.delivered(work.number)
    assert "was denied by carol: because it is Friday" in texts[1]
    (refusal,) = [text for text in texts if "not accepted" in text]
    assert refusal.startswith(f"D-{work.number}: ben: Your answer")
    for number, verb in enumerate(("approve", "deny"), 22):
        work = await make.asked(GATE, notify=(issue.place.target,))
        await issue.delivered(work.number)
        shown = comment(f"/{verb} D-{work.number}/1", "carol", number)
        assert await issue.on(shown) == "answered", "as the question shows it"


async def test_a_result_with_a_pull_request_has_no_patch(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    """Each file is a comment, which notifies everyone; the statement stays with the job."""
    for result, patches in (({}, 1), ({"pr_url": "https://forge.example/1"}, 0)):
        work = await make.running(notify=(issue.place.target,))
        for name, kind in (
            ("changes.patch", "patch"),
            ("evidence.json", "evidence"),
            ("r", "report"),
        ):
            await rt.checkpoints.artifact(work.lease, name, kind, b"--- a\n+++ b\n")
        await rt.settlement.outcome(work, Done(result))
        texts = [text for text in await issue.delivered(work.number) if work.name in text]
        files = [text.split("\n")[0].removeprefix(f"{work.name}: ") for text in texts[2:]]
        assert files == ["changes.patch"] * patches + ["r"]


async def test_polls_bring_the_label_and_the_answer_once(
    issue: Issue, rt: Runtime, make: Factory
) -> None:
    """Over the whole service; a process that dies before it records the outcome repeats it."""
    world = issue.place.fake.world
    service = ForgeService(issue.rt)

    async def poll(polls: int = 1) -> None:
        for _ in range(polls):
            service.receiver._due["acme"] = 0.0
            await service._round()

    item = {"number": 7, "title": world.issue[0], "body": world.issue[1]}
    item |= {"labels": [{"name": "fix it"}]}
    world.talk.issues.append(item | {"html_url": "http://x/7"})
    world.labelers += [("bug", "ben"), ("fix it", "anna")]
    await poll(polls=2)
    (job,) = await rt.read_model.jobs()
    assert (await rt.read_model.job(job.number)).invoker_id == "anna"
    await issue.delivered(job.number)
    work = await make.asked(QUESTION, notify=(issue.place.target,))
    await issue.delivered(work.number)
    world.comment("#7", f"/answer D-{work.number}/1 red", "ben")
    world.faults.add("all comments", Fault("error", status=502, text="bad gateway"))
    await poll()
    assert (await rt.questions.get(work.number, 1)).status == "open"
    service.receiver._paused["acme"] = 0.0
    service.receiver._repos["acme"]._paused.clear()
    finish = type(rt.forge_events).finish
    lost = [True]

    async def dies(self: Any, id: int, outcome: str) -> bool:
        if lost and lost.pop():
            raise Failure("killed")
        return await finish(self, id, outcome)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(rt.forge_events), "finish", dies)
        await poll()
    service._people._paused.clear()
    await poll(polls=2)
    assert (await rt.questions.get(work.number, 1)).status == "answered"
    answers = (await rt.questions.of_job(work.number))[1]
    assert [answer.accepted for answer in answers] == [True]
    texts = await issue.delivered(work.number)
    assert len(texts) == 4, "two statuses, the question, and the answer of ben"
    world.refused = "not linked"  # as the comments of a locked issue are
    world.issues.add("#8")
    stranger = comment("@draftsman fix this", "eve", number=8)
    deleted = replace(LABEL, number=99, key="label:99:fix it:")
    for event in (stranger, deleted):
        await service.receiver.receive("acme", "poll", [event])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forges, "MAX_UNPROCESSED", 1)
        await poll(polls=2)
    left = [stored.event for stored in await rt.forge_events.unprocessed(["acme"])]
    assert left == [stranger], "an event that fails does not hold up the others"
    assert len(await rt.read_model.jobs()) == 2


@cases(
    ("text", "kind"),
    [
        ("/answer D-1/2 yes", "answer"),
        ("@draftsman approve", "answer"),
        ("> quoted\n\n/deny D-1/2 because", "answer"),
        ("/approve", "answer"),
        ("approve", "comment"),
        ("please rename it", "comment"),
        ("/tell D-1 use v2", "answer"),
        ("@draftsman use v2", "comment"),
        ("@anna /approve", "comment"),
        ("```\n/approve\n```", "comment"),
    ],
)
def test_a_command_on_a_pull_request_is_an_answer_and_other_text_is_feedback(
    text: str, kind: str
) -> None:
    event = comment(text, kind=EventKind.COMMENT)
    assert classify(event, "draftsman").kind == kind
    assert classify(replace(event, kind=EventKind.REVIEW), "draftsman").kind == "review"


@cases(
    ("kind", "event", "target"),
    [
        ("github", EventKind.ANSWER, "acme/acme/pay#7"),
        ("gitlab", EventKind.ANSWER, "acme/acme/pay!7"),
        ("gitlab", EventKind.ISSUE_COMMENT, "acme/acme/pay#7"),
    ],
)
def test_the_target_of_an_event(kind: str, event: EventKind, target: str) -> None:
    table = ForgeSettings.of({"kind": kind, "token": {"env": "T"}})
    found = EventContext(cast(Runtime, None), "acme", table, comment("x", kind=event))
    assert found.target == f"forge:{target}" == parse_target(found.target).name
