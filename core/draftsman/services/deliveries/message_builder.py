"""A delivery, and what it says: the job, the question and whom it is for, as things are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from draftsman.domain.ids import actor_name
from draftsman.domain.job import Job, Source, Status
from draftsman.domain.messages.delivery import (
    ChannelName,
    ClaimedDelivery,
    DeliveryKind,
    Message,
    Subject,
)
from draftsman.domain.people.policy import Person, Policy
from draftsman.domain.question import Question, QuestionKind
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.log import redact
from draftsman.store import deliveries as store
from draftsman.store import people
from draftsman.store.postgres.database import Connection

CHANNEL_SOURCES: Final = {ChannelName.SLACK: Source.SLACK, ChannelName.TRELLO: Source.TRELLO}
"""Where the people of a channel do things."""
MAX_LINKS: Final = 10_000
"""Links that are looked at."""


def build_message(
    item: ClaimedDelivery, facts: store.MessageFacts, question: Question | None, policy: Policy
) -> Message:
    """Return what a delivery says, without what looks like a secret."""
    return Message(
        marker=str(item.id),
        seq=item.seq,
        kind=item.kind,
        target=facts.moved or item.target,
        subject=_subject(facts, facts.job_id),
        created_at=item.created_at,
        thread=None if facts.moved else item.thread,
        root=facts.root,
        question=None if question is None else _public_question(question),
        payload=_public(item.payload),
        asked=_asked(policy, question, facts.invoker_id, item.channel) if question else (),
    )


def build_result(job: Job) -> Message:
    """Return what would be said of a job's end, without what looks like a secret."""
    return Message(
        marker=str(job.id),
        seq=0,
        kind=DeliveryKind.RESULT,
        target="",
        subject=_subject(job, job.id),
        created_at=job.updated_at,
    )


async def with_identity_links(conn: Connection, policy: Policy, channel: ChannelName) -> Policy:
    """Return the policy whose people have the ids as well that a code joined to them."""
    if channel not in CHANNEL_SOURCES:
        return policy
    source, known = CHANNEL_SOURCES[channel], dict(policy.people)
    for link in await people.links(conn, MAX_LINKS):
        person = known.get(link.person)
        if link.channel == source and person is not None and source not in person.ids:
            ids = {**person.ids, source: link.external_id}
            known[link.person] = replace(person, ids=ids)
    return replace(policy, people=known)


def requester(policy: Policy, invoker: str, channel: ChannelName) -> str | None:
    """Return who asked for a job, by the channel's own id; None where the channel has none.

    A board that asked, `trello:board:ID`, is nobody who could be told anything.
    """
    if (person := policy.people.get(invoker)) is not None:
        return person.ids.get(CHANNEL_SOURCES[channel]) if channel in CHANNEL_SOURCES else None
    place, _, own = invoker.partition(":")
    return (
        own if channel in CHANNEL_SOURCES and place == channel and own and ":" not in own else None
    )


def _subject(facts: store.MessageFacts | Job, id: UUID) -> Subject:
    repo = f"{facts.repo_owner}/{facts.repo_name}" if facts.repo_owner else facts.repo_name
    return Subject(
        number=facts.number,
        id=id,
        type=facts.type,
        status=Status(facts.status),
        title=_public(facts.ticket_title or facts.type),
        agent=facts.agent,
        repo=repo,
        url=facts.ticket_url,
        invoker=facts.invoker_display_name or facts.invoker_id,
        error=_public(facts.last_error),
        denied=facts.error_class == ErrorClass.DENIED,
        canceled_by=actor_name(facts.cancel_requested_by) if facts.cancel_requested_by else None,
        cancel_reason=_public(facts.cancel_reason),
        next_retry_at=facts.next_retry_at,
        result=_public(facts.result),
        created_at=facts.created_at,
        finished_at=facts.finished_at,
    )


def _asked(
    policy: Policy, question: Question, invoker: str, channel: ChannelName
) -> tuple[Person, ...]:
    """Return whom a question is for: the approvers; or who wants the job, and others it went to.

    Where those cannot be reached there, everybody who may answer.
    """
    gate = question.kind is QuestionKind.APPROVAL
    able = policy.answering(question.approvers, invoker, gate=gate)
    if gate:
        return tuple(able)
    named = policy.approvers(question.approvers) | {invoker}
    nearest = [person for person in able if person.name in named]
    if invoker not in policy.people and (own := requester(policy, invoker, channel)) is not None:
        nearest.append(Person(invoker, frozenset(), {CHANNEL_SOURCES[channel]: own}))
    return tuple(nearest or able)


def _public_question(question: Question) -> Question:
    return replace(
        question,
        text=_public(question.text),
        context_snippet=_public(question.context_snippet),
        action=_public(question.action),
        resolution=_public(question.resolution),
    )


def _public(value: Any) -> Any:
    """Return the value without what looks like a secret, all through."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _public(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_public(item) for item in value]
    return value
