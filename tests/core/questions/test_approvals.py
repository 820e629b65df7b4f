"""Approvals: approvers, quorum, and the effect of a decision."""

from __future__ import annotations

import re
from typing import Any

import pytest

from draftsman.database.database import Connection, Database
from draftsman.errors import UsageError
from draftsman.jobs.job import Source, Status
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.questions.answer import Verdict
from draftsman.questions.question import OnDeny, OnExpire
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import People
from tests.support.statements import rows


async def _gate(make: Factory, **changed: Any) -> ClaimedJob:
    return await make.asked(GATE.model_copy(update=changed))


async def test_an_approval_by_one_person_resumes_the_job(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await _gate(make)
    verdict = await make.decide(work.number, True, people.carol, reason="looks good")
    assert verdict.resolution == {
        "outcome": "approved",
        "via": "person",
        "by": ["carol"],
        "reason": "looks good",
    }
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_denial_ends_the_job(make: Factory, rt: Runtime, people: People) -> None:
    work = await _gate(make)
    verdict = await make.decide(work.number, False, people.carol, reason="not on a Friday")
    job = await rt.read_model.job(work.number)
    assert verdict.job_status is job.status is Status.FAILED
    assert job.last_error == "denied by carol: not on a Friday"
    assert job.error_class == "DENIED"
    why = await rt.read_model.why(work.number)
    assert (why.reason, why.text) == ("denied", "denied by carol: not on a Friday")


async def test_a_denial_with_on_deny_continue_resumes_the_job(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await _gate(make, on_deny=OnDeny.CONTINUE)
    verdict = await make.decide(work.number, False, people.carol)
    assert verdict.resolution is not None
    assert verdict.resolution["outcome"] == "denied"
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_a_quorum_needs_as_many_people(make: Factory, rt: Runtime, people: People) -> None:
    work = await _gate(make, quorum=2)
    first = await make.decide(work.number, True, people.carol)
    assert (first.accepted, first.resolved, first.votes, first.quorum) == (True, False, 1, 2)
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.payload["votes"]) == ("vote_received", 1)
    second = await make.decide(work.number, True, people.dave)
    assert second.resolution is not None
    assert second.resolution["by"] == ["carol", "dave"]
    assert second.job_status is Status.RESUMED


async def test_an_approval_waits_no_longer_for_those_who_approved(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await _gate(make, quorum=2, approvers=("carol", "dave"))
    await make.decide(work.number, True, people.carol)
    for person, waits in (("carol", 0), ("dave", 1)):
        actor = getattr(people, person)
        (question,) = await rt.questions.open(fold_for=actor)
        assert (question.approved_by, question.for_viewer) == (["carol"], bool(waits)), person
        (of_job,) = rt.questions.marked(await rt.questions.open(work.number), actor)
        assert (of_job.approved_by, of_job.for_viewer) == (["carol"], bool(waits)), person
        assert (await rt.questions.counts(actor)).for_you == waits, person


async def test_the_first_denial_decides_for_any_quorum(make: Factory, people: People) -> None:
    work = await _gate(make, quorum=3, approvers=("carol", "dave", "erin"))
    await make.decide(work.number, True, people.carol)
    denied = await make.decide(work.number, False, people.dave)
    assert denied.resolution is not None
    assert denied.resolution["outcome"] == "denied"
    assert denied.resolution["by"] == ["dave"]


async def test_one_person_through_two_channels_counts_once(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await _gate(make, quorum=2)
    channels = (Source.CLI, "slack", "trello")
    verdicts = [
        await make.decide(work.number, True, people.on(channel, "carol")) for channel in channels
    ]
    assert [verdict.accepted for verdict in verdicts] == [True, False, False]
    assert verdicts[1].reason == "carol has already approved; each person votes once"
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL


@pytest.mark.parametrize("on_deny", OnDeny)
async def test_an_approver_can_still_deny_an_open_approval(
    make: Factory, rt: Runtime, people: People, on_deny: OnDeny
) -> None:
    work = await _gate(make, quorum=2, on_deny=on_deny)
    await make.decide(work.number, True, people.carol)
    denied = await make.decide(work.number, False, people.carol, reason="I looked again")
    assert (denied.accepted, denied.resolved) == (True, True)
    assert denied.resolution is not None
    assert denied.resolution["outcome"] == "denied"
    assert denied.resolution["by"] == ["carol"]
    _, answers = await rt.questions.of_job(work.number)
    votes = [(answer.voter, answer.payload["decision"], answer.accepted) for answer in answers]
    assert votes == [("carol", "approve", True), ("carol", "deny", True)]
    assert not (await make.decide(work.number, False, people.carol)).accepted
    assert not (await make.decide(work.number, True, people.dave)).accepted


def _refused(verdict: Verdict, reason: str) -> bool:
    return not verdict.accepted and reason in str(verdict.reason)


async def test_only_named_approvers_can_decide(make: Factory, people: People) -> None:
    work = await _gate(make, approvers=("dave",))
    assert _refused(await make.decide(work.number, True, people.carol), "allowed: dave")
    assert _refused(await make.decide(work.number, True, people.ben), "needs the role approver")
    assert (await make.decide(work.number, True, people.dave)).accepted


async def test_a_group_includes_its_people(make: Factory, people: People) -> None:
    work = await _gate(make, approvers=("leads",))
    assert _refused(await make.decide(work.number, True, people.erin), "allowed: carol, dave")
    assert (await make.decide(work.number, True, people.dave)).accepted


async def test_without_a_list_everyone_with_the_role_can_decide(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await _gate(make, approvers=None)
    question = await rt.questions.get(work.number, 1)
    assert question.approvers == ["carol", "dave", "erin"]
    assert (await make.decide(work.number, True, people.erin)).accepted


@pytest.mark.parametrize(
    ("changed", "numbers"),
    [
        ({"approvers": ()}, "cannot reach its quorum of 1 with these approvers: none;"),
        ({"approvers": ("ben", "olga", "nobody")}, "these approvers: none"),
        ({"quorum": 3}, "cannot reach its quorum of 3 with these approvers: carol, dave;"),
        ({"approvers": ("leads", "carol"), "quorum": 3}, "these approvers: carol, dave"),
        ({"approvers": ("erin",)}, "these approvers: none"),
        ({"approvers": None, "quorum": 3}, "these approvers: carol, dave"),
    ],
)
async def test_an_unreachable_quorum_is_refused(
    make: Factory, rt: Runtime, people: People, changed: dict[str, Any], numbers: str
) -> None:
    work = await make.running(await make.queued(actor=people.erin))
    item = GATE.model_copy(update=changed)
    with pytest.raises(UsageError, match=re.escape(numbers)):
        await rt.asking.ask(work.lease, item, invoker="erin")
    assert await rt.questions.open(work.number) == []


async def test_people_of_the_escalation_count_for_the_quorum(make: Factory) -> None:
    escalates = {"on_expire": OnExpire.ESCALATE, "escalate_to": "dave"}
    await _gate(make, approvers=("carol",), quorum=2, **escalates)


async def test_no_decision_is_possible_without_configured_people(
    make: Factory, settings: Settings, db: Database, people: People
) -> None:
    without_people = wire(settings.model_copy(update={"people": {}, "groups": {}}), db, False)
    work = await _gate(make)
    with pytest.raises(UsageError, match="with these approvers: none"):
        await Factory(without_people, make.owner).asked(GATE.model_copy(update={"approvers": None}))
    unlinked = people.on("slack", "carol-2")
    verdict = await Factory(without_people, make.owner).decide(work.number, True, unlinked)
    assert _refused(verdict, "no people are configured")


async def test_an_unlinked_identity_does_not_count(make: Factory, people: People) -> None:
    work = await _gate(make)
    unlinked = people.on("slack", "stranger")
    assert _refused(await make.decide(work.number, True, unlinked), "Stranger may not approve")


async def _erins_gate(make: Factory, people: People) -> ClaimedJob:
    work = await make.running(await make.queued(actor=people.erin))
    item = GATE.model_copy(update={"approvers": ("erin", "carol")})
    assert await make.rt.asking.ask(work.lease, item)
    return work


async def test_an_invoker_cannot_approve_an_own_job(make: Factory, people: People) -> None:
    work = await _erins_gate(make, people)
    verdict = await make.decide(work.number, True, people.erin)
    assert _refused(verdict, "erin requested this job and may not approve it; allowed: carol")
    assert (await make.decide(work.number, True, people.carol)).accepted


async def test_a_configured_self_approval_is_recorded(
    make: Factory, settings: Settings, db: Database, people: People
) -> None:
    questions = settings.questions.model_copy(update={"self_approval": True})
    lenient = Factory(
        wire(settings.model_copy(update={"questions": questions}), db, False), make.owner
    )
    work = await _erins_gate(lenient, people)
    verdict = await lenient.decide(work.number, True, people.erin)
    assert verdict.resolution is not None
    assert verdict.resolution["self_approved"] is True


async def test_the_owner_of_an_embedded_database_can_decide_with_a_recorded_self_approval(
    settings: Settings, db: Database, owner: Actor
) -> None:
    make = Factory(wire(settings, db, True), owner)
    work = await _gate(make, approvers=())
    verdict = await make.decide(work.number, True, make.owner)
    assert verdict.resolution is not None
    assert verdict.resolution["self_approved"] is True


async def test_a_decision_of_another_is_not_a_self_approval(make: Factory, people: People) -> None:
    work = await _gate(make)
    verdict = await make.decide(work.number, True, people.carol)
    assert verdict.resolution is not None
    assert "self_approved" not in verdict.resolution


async def test_a_changed_action_is_a_new_approval_without_votes(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await _gate(make, action={"sha256": "1"}, quorum=2)
    await make.decide(work.number, True, people.carol)
    await make.decide(work.number, True, people.dave)
    next_run = await make.running(work.number)
    changed = GATE.model_copy(update={"action": {"sha256": "2"}, "quorum": 2})
    assert await rt.asking.ask(next_run.lease, changed) == f"{work.name}/2"
    verdict = await make.decide(work.number, True, people.carol, n=2)
    assert (verdict.accepted, verdict.resolved, verdict.votes) == (True, False, 1)


@pytest.mark.parametrize("yes", [True, False])
async def test_a_decision_after_the_end_is_stored_and_refused(
    make: Factory, rt: Runtime, people: People, yes: bool
) -> None:
    work = await _gate(make)
    await make.decide(work.number, yes, people.carol)
    late = await make.decide(work.number, not yes, people.dave)
    how = "approved" if yes else "denied"
    assert late.reason == f"{work.name}/1 was already {how} by carol"
    answers = (await rt.questions.of_job(work.number))[1]
    assert [answer.accepted for answer in answers] == [True, False]


async def test_refused_votes_are_stored_up_to_a_limit_and_then_counted(
    make: Factory, rt: Runtime, people: People, conn: Connection
) -> None:
    work = await _gate(make)
    for _ in range(25):
        assert _refused(await make.decide(work.number, True, people.ben), "Ben may not approve")
    _, answers = await rt.questions.of_job(work.number)
    events = [e for e in await rt.read_model.job_events(work.number) if e.kind == "answer_refused"]
    assert (len(answers), len(events)) == (20, 20)
    ((counted, voter, reason),) = await rows(
        conn, "SELECT answers, last_voter, last_reason FROM draftsman.refused_answers"
    )
    assert (counted, voter) == (5, "ben")
    assert "ben may not approve" in reason.lower()
    assert (await make.decide(work.number, True, people.carol)).resolved
