"""Builder of messages from current job and question data, with secrets redacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from draftsman.agent_runs.changes.review import Review
from draftsman.database.sentences import with_sentence
from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    Delegation,
    DeliveryKind,
    Message,
    Subject,
)
from draftsman.deliveries.message_facts import GroupStop, MessageFacts
from draftsman.deliveries.result_text import usage_text
from draftsman.deliveries.service.recipients import addressees, unmentioned_people
from draftsman.ids import actor_name
from draftsman.jobs.job import Job, Status
from draftsman.jobs.job_summary import dismissal_text
from draftsman.jobs.retries import ErrorClass
from draftsman.log import redact_values
from draftsman.people import visibility
from draftsman.people.policy import Person, Policy
from draftsman.questions.permission_rules.permission_rule import PermissionRule, rule_notice
from draftsman.questions.question import (
    IdenticalQuestion,
    Question,
    asking_text,
)

NO_REVIEW: Final = Review(None)


def build_message(
    item: ClaimedDelivery,
    facts: MessageFacts,
    question: Question | None,
    policy: Policy,
    stop: GroupStop | None = None,
    identical_questions: Sequence[IdenticalQuestion] = (),
    review: Review = NO_REVIEW,
    rule: PermissionRule | None = None,
) -> Message:
    """Return the redacted message of a delivery; `stop` is how the group of its job stopped.

    `identical_questions` are those of other jobs, which are answered together. `review` has the
    changes that people review with the question, and `rule` the rule that its buttons decide on.
    """
    subject = replace(_subject(facts, facts.job_id, facts.denial), group=facts.group_name)
    if facts.invoker_id in policy.people:  # the display name of a terminal is a login
        subject = replace(subject, invoker=facts.invoker_id)
    if stop is not None and stop.skipped:
        subject = replace(subject, group_stop=stop.text(facts.group_name or ""))
    recipients: tuple[Person, ...] = ()
    unmentioned: frozenset[str] = frozenset()
    if question is not None:
        recipients = addressees(policy, question, facts.invoker_id, item.channel, subject.repo)
        unmentioned = unmentioned_people(policy, question, facts, recipients, identical_questions)
        unmentioned |= {*facts.digested, *facts.approved_by}
        asking = asking_text(question.job, [identical.job for identical in identical_questions])
        question = replace(
            question,
            text="\n\n".join(filter(None, [redact_values(question.text), asking])),
            context_snippet=redact_values(question.context_snippet),
            action=redact_values(question.action),
            resolution=redact_values(question.resolution),
        )
    elif (
        person := policy.people.get(str(item.payload.get("person")))
    ) is not None and visibility.may_see(person, subject.repo):
        recipients = (person,)
    asked = review.requested
    payload = with_sentence(item.payload)
    if payload.get("rule") is not None:
        payload = rule_notice(payload, rule)
    return Message(
        marker=str(item.id),
        seq=item.seq,
        kind=item.kind,
        target=facts.replacement_target or item.target,
        subject=subject,
        created_at=item.created_at,
        thread=None if facts.replacement_target else item.thread,
        root=facts.root,
        question=question,
        payload=redact_values(payload),
        recipients=recipients,
        delegation=_delegation(facts),
        unmentioned=unmentioned,
        changes=review.summary,
        requested=None if asked is None else (asked.heading, redact_values(asked.text)),
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


def _subject(facts: MessageFacts | Job, id: UUID, resolution: Mapping[str, Any] | None) -> Subject:
    denied = facts.error_class == ErrorClass.DENIED
    denial = redact_values(dict(resolution or {})) if denied else {}
    pause_reason = facts.pause_reason if isinstance(facts, MessageFacts) else None
    paused_by = actor_name(facts.paused_by or "") if isinstance(facts, MessageFacts) else None
    usage = (facts.usage or {}) if isinstance(facts, MessageFacts) else {}
    dismissed = ""
    if isinstance(facts, MessageFacts) and facts.dismissed_by is not None:
        dismissed = dismissal_text(facts.dismissed_by, redact_values(facts.dismissal_reason))
    return Subject(
        number=facts.number,
        id=id,
        type=facts.type,
        status=Status(facts.status),
        title=redact_values(facts.title),
        request=facts.request and facts.request.summary,
        url=facts.url,
        invoker=facts.invoker_display_name or facts.invoker_id,
        error=redact_values(facts.last_error),
        denied=denied,
        denied_by=tuple(denial.get("by", ())),
        denial_reason=denial.get("reason"),
        canceled_by=actor_name(facts.cancel_requested_by) if facts.cancel_requested_by else None,
        cancel_reason=redact_values(facts.cancel_reason),
        paused_by=paused_by,
        pause_reason=redact_values(pause_reason),
        failure_open=isinstance(facts, MessageFacts) and facts.failure_open,
        dismissed=dismissed,
        asks_with=facts.asks_with if isinstance(facts, MessageFacts) else None,
        next_retry_at=facts.next_retry_at,
        result=redact_values(facts.result),
        usage=usage_text(**usage),
        cost=float(usage.get("cost") or 0.0),
        created_at=facts.created_at,
        finished_at=facts.finished_at,
        ended_pull=facts.ended_pull if isinstance(facts, MessageFacts) else None,
    )
