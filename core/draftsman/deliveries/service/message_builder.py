"""Builder of messages from current job and question data, with secrets redacted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from draftsman.channels import LOG, WEBHOOK, ChannelName
from draftsman.channels.accounts import person_target
from draftsman.database.database import Connection
from draftsman.database.sentences import sentence
from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    Delegation,
    DeliveryKind,
    Message,
    Subject,
)
from draftsman.deliveries.message_facts import GroupStop, MessageFacts
from draftsman.deliveries.result_text import usage_text
from draftsman.ids import actor_name
from draftsman.jobs.job import Job, Status
from draftsman.jobs.retries import ErrorClass
from draftsman.log import redact
from draftsman.people import visibility
from draftsman.people.policy import Person, Policy
from draftsman.people.store import people as people_store
from draftsman.questions.question import (
    IdenticalQuestion,
    Question,
    QuestionKind,
    asking_text,
)

MAX_LINKS: Final = 10_000
"""Maximum number of identity links read."""


def build_message(
    item: ClaimedDelivery,
    facts: MessageFacts,
    question: Question | None,
    policy: Policy,
    stop: GroupStop | None = None,
    identical_questions: Sequence[IdenticalQuestion] = (),
    digested: Collection[str] = (),
) -> Message:
    """Return the redacted message of a delivery; `stop` is how the group of its job stopped.

    `identical_questions` are those of other jobs, which are answered together. People are
    mentioned with the first of them only, and not if they are `digested`: they have it in a digest.
    """
    subject = replace(_subject(facts, facts.job_id, facts.denial), group=facts.group_name)
    if facts.invoker_id in policy.people:  # the display name of a terminal is a login
        subject = replace(subject, invoker=facts.invoker_id)
    if stop is not None and stop.skipped:
        subject = replace(subject, group_stop=stop.text(facts.group_name or ""))
    recipients: tuple[Person, ...] = ()
    unmentioned: frozenset[str] = frozenset()
    if question is not None:
        recipients = _addressees(policy, question, facts.invoker_id, item.channel, subject.repo)
        unmentioned = _unmentioned(policy, question, facts, recipients, identical_questions)
        unmentioned |= frozenset(digested)
    elif (
        person := policy.people.get(str(item.payload.get("person")))
    ) is not None and visibility.may_see(person, subject.repo):
        recipients = (person,)
    return Message(
        marker=str(item.id),
        seq=item.seq,
        kind=item.kind,
        target=facts.replacement_target or item.target,
        subject=subject,
        created_at=item.created_at,
        thread=None if facts.replacement_target else item.thread,
        root=facts.root,
        question=None if question is None else _redacted_question(question, identical_questions),
        payload=_redacted(_with_text(item.payload)),
        recipients=recipients,
        delegation=_delegation(facts),
        unmentioned=unmentioned,
    )


def _delegation(facts: MessageFacts) -> Delegation | None:
    if facts.delegated_to is None or facts.delegated_until is None:
        return None
    return Delegation(facts.delegated_to, facts.delegated_by or "", facts.delegated_until)


def build_result(job: Job, questions: Sequence[Question] = ()) -> Message:
    """Build the message of a job's result, redacted; `questions` are those of the job."""
    resolutions = [question.resolution or {} for question in questions]
    denials = [each for each in resolutions if each.get("outcome") == "denied"]
    return Message(
        marker=str(job.id),
        seq=0,
        kind=DeliveryKind.RESULT,
        target="",
        subject=_subject(job, job.id, denials[-1] if denials else None),
        created_at=job.updated_at,
    )


async def with_identity_links(
    conn: Connection, policy: Policy, channel: ChannelName | None = None
) -> Policy:
    """Return the policy extended by the linked identities of a channel, or of all."""
    if channel in (LOG, WEBHOOK):
        return policy
    people_by_name = dict(policy.people)
    for link in await people_store.links(conn, MAX_LINKS):
        person = people_by_name.get(link.person)
        if person is None or link.channel in person.ids or channel not in (None, link.channel):
            continue
        ids = {**person.ids, link.channel: link.external_id}
        people_by_name[link.person] = replace(person, ids=ids)
    return replace(policy, people=people_by_name)


def requester(policy: Policy, invoker: str, channel: ChannelName) -> str | None:
    """Return the channel id of the job's requester; None where there is none.

    A requesting board, `CHANNEL:board:ID`, has none.
    """
    if (person := policy.people.get(invoker)) is not None:
        return person.ids.get(channel)
    source, _, channel_id = invoker.partition(":")
    return None if source != channel or ":" in channel_id else channel_id or None


def recipient(policy: Policy, target: str, channel: ChannelName) -> Person | None:
    """Return the known person who alone reads a target of a channel; None for any other target."""
    for person in policy.people.values():
        if any(person_target(channel, account) == target for account in person.accounts(channel)):
            return person
    return None


def _subject(facts: MessageFacts | Job, id: UUID, resolution: Mapping[str, Any] | None) -> Subject:
    denied = facts.error_class == ErrorClass.DENIED
    denial = _redacted(dict(resolution or {})) if denied else {}
    repo = f"{facts.repo_owner}/{facts.repo_name}" if facts.repo_owner else facts.repo_name
    pause_reason = facts.pause_reason if isinstance(facts, MessageFacts) else None
    paused_by = actor_name(facts.paused_by or "") if isinstance(facts, MessageFacts) else None
    usage = (facts.usage or {}) if isinstance(facts, MessageFacts) else {}
    return Subject(
        number=facts.number,
        id=id,
        type=facts.type,
        status=Status(facts.status),
        title=_redacted(facts.ticket_title or facts.type),
        agent=facts.agent,
        repo=repo,
        url=facts.ticket_url,
        invoker=facts.invoker_display_name or facts.invoker_id,
        error=_redacted(facts.last_error),
        denied=denied,
        denied_by=tuple(denial.get("by", ())),
        denial_reason=denial.get("reason"),
        canceled_by=actor_name(facts.cancel_requested_by) if facts.cancel_requested_by else None,
        cancel_reason=_redacted(facts.cancel_reason),
        paused_by=paused_by,
        pause_reason=_redacted(pause_reason),
        asks_with=facts.asks_with if isinstance(facts, MessageFacts) else None,
        next_retry_at=facts.next_retry_at,
        result=_redacted(facts.result),
        usage=usage_text(**usage),
        cost=float(usage.get("cost") or 0.0),
        created_at=facts.created_at,
        finished_at=facts.finished_at,
        ended_pull=facts.ended_pull if isinstance(facts, MessageFacts) else None,
    )


def _addressees(
    policy: Policy, question: Question, invoker: str, channel: ChannelName, repo: str | None
) -> tuple[Person, ...]:
    """Return the people that a question about a repository is addressed to.

    For an approval these are the approvers; otherwise the invoker and the people it escalated to,
    or everyone who may answer where none of them can be reached in the channel.
    """
    approval = question.kind is QuestionKind.APPROVAL
    eligible = policy.eligible_people(question.approvers, invoker, approval=approval, repo=repo)
    if approval:
        return tuple(eligible)
    addressed_names = policy.approvers(question.approvers) | {invoker}
    nearest = [person for person in eligible if person.name in addressed_names]
    channel_id = None if invoker in policy.people else requester(policy, invoker, channel)
    if channel_id is not None:
        account = Person(invoker, frozenset(), {channel: channel_id})
        nearest += [account] * visibility.may_see(account, repo)
    return tuple(nearest or eligible)


def _unmentioned(
    policy: Policy,
    question: Question,
    facts: MessageFacts,
    recipients: Sequence[Person],
    identical_questions: Sequence[IdenticalQuestion],
) -> frozenset[str]:
    """Return the recipients whom a message in a shared target does not mention.

    Of a question with a ladder, only the requester is mentioned: steps notify the others. Of
    identical questions, people are mentioned with the first.
    """
    if any(other.is_earlier for other in identical_questions):
        return frozenset(person.name for person in recipients)
    asker = policy.requester(facts.invoker_id)
    return frozenset(
        person.name
        for person in recipients
        if (facts.ladder is not None and person.name != asker)
        or not (question.critical or person.free_at(facts.now) <= facts.now)
    )


def _redacted_question(
    question: Question, identical_questions: Sequence[IdenticalQuestion]
) -> Question:
    asking = asking_text(question.job, [identical.job for identical in identical_questions])
    return replace(
        question,
        text="\n\n".join(filter(None, [_redacted(question.text), asking])),
        context_snippet=_redacted(question.context_snippet),
        action=_redacted(question.action),
        resolution=_redacted(question.resolution),
    )


def _with_text(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a notice with its text, if it has only a name and values."""
    name = payload.get("sentence")
    values = payload.get("values")
    if not isinstance(name, str) or not isinstance(values, dict):
        return payload
    return {"text": sentence(name, values), "names_job": True}


def _redacted(value: Any) -> Any:
    """Return the value with secrets redacted at every level."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item) for item in value]
    return value
