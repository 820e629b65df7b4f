"""Plain-text rendering of messages, for channels without markup. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, assert_never

from draftsman.agent_runs.changes.diff import is_diff
from draftsman.deliveries.action_text import action_text
from draftsman.deliveries.delivery import Delegation, DeliveryKind, Message, Subject
from draftsman.deliveries.result_text import change_summary, counts_summary, summary_lines
from draftsman.jobs.job import Status
from draftsman.people.spans import (
    ActorRef,
    Span,
    Spans,
    actor_spans,
    decode_spans,
    spans_text,
)
from draftsman.questions.answer import Verdict
from draftsman.questions.question import OpenQuestion, Question, QuestionKind, QuestionStatus
from draftsman.text import humanize

_ENDED: Final = {
    Status.FAILED: "failed",
    Status.DEAD_LETTER: "is a dead letter",
    Status.CANCELED: "was canceled",
    Status.EXPIRED: "expired",
}
_WITHOUT_ERROR: Final = frozenset(
    {
        Status.CLAIMED,
        Status.RUNNING,
        Status.RESUMED,
        Status.WAITING_FOR_INPUT,
        Status.WAITING_FOR_APPROVAL,
        Status.CANCELED,
        Status.COMPLETED,
    }
)
"""Statuses that hide an earlier error."""
_NOTHING: Final = sha256(b"").hexdigest()
"""SHA-256 of the patch of a run that changed nothing."""
_NOUNS: Final = {"approved": "approval", "denied": "denial"}
_CHOICES: Final = 10
"""Maximum number of choices in a notification."""


def render_plain(message: Message) -> str:
    """Return the whole message as lines of text."""
    return "\n".join(_lines(message))


def _lines(message: Message) -> Iterator[str]:
    subject = message.subject
    question = message.question
    payload = message.payload or {}
    match message.kind:
        case DeliveryKind.STATUS:
            ended = "was denied" if subject.denied else _ENDED.get(subject.status)
            yield f"{_headline(subject)} {ended or f'is {_state(subject)}'}"
            if progress := progress_text(message):
                yield progress
        case DeliveryKind.RESULT:
            yield f"{_headline(subject)} {job_outcome_text(subject)}"
            if subject.group_stop:
                yield subject.group_stop
            yield from _result(subject.result)
            if subject.usage:
                yield subject.usage
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER if question is not None:
            if message.kind is DeliveryKind.REMINDER:
                yield str(payload.get("text") or f"{question.name} is waiting for an answer")
            yield from question_lines(question, message.changes, message.delegation)
        case DeliveryKind.QUESTION_CLOSED if question is not None:
            yield f"{question.name} {resolution_text(question)}"
            yield f"question: {question.text}"
        case DeliveryKind.FILE:
            yield f"{subject.name}: file {payload.get('name')}"
        case DeliveryKind.NOTICE:
            yield spans_text(notice_spans(message))
        case DeliveryKind.QUESTION | DeliveryKind.REMINDER | DeliveryKind.QUESTION_CLOSED:
            yield f"{subject.name}: {message.kind}"
        case _:
            assert_never(message.kind)


def pause_text(subject: Subject) -> str:
    """Return `paused by anna: the API is down`; "" for a job that is not paused."""
    if subject.pause_reason is None:
        return ""
    return f"paused by {subject.paused_by}: {' '.join(subject.pause_reason.split())}"


def state_text(subject: Subject) -> str:
    """Return the status: `waiting for input: asks the same as D-141/1`."""
    same = f": asks the same as {subject.asks_with}" if subject.asks_with else ""
    return f"{humanize(subject.status)}{same}"


def status_text(subject: Subject) -> str:
    """Return the status, with the time of a retry."""
    state = state_text(subject)
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{state} at {format_time(subject.next_retry_at)}"
    return state


def shown_error(subject: Subject) -> str:
    """Return the error of a job; "" for a denial, and while a later run works or waits."""
    return "" if subject.denied or subject.status in _WITHOUT_ERROR else subject.error or ""


def progress_text(message: Message) -> str:
    """Return the progress of a running agent: `3 of 7 steps: write tests`, and its newest line."""
    progress = (message.payload or {}).get("progress")
    if message.subject.status is not Status.RUNNING or not isinstance(progress, Mapping):
        return ""
    lines = (" ".join(str(progress.get(name) or "").split()) for name in ("plan", "line"))
    return "\n".join(line for line in lines if line)


def notice_spans(message: Message) -> Spans:
    """Return a notice; the first span is the job's name, or empty if the text begins with it."""
    payload = message.payload or {}
    spans = decode_spans(payload.get("spans")) or (str(payload.get("text", "")),)
    return "" if payload.get("names_job") else f"{message.subject.name}: ", *spans


def brief_spans(message: Message, reply: str = "reply in this thread") -> Spans:
    """Return the message as the short text of a chat notification, above its buttons.

    A result has its summary without data, and a question its first choices. `reply` tells how to
    answer in free text.
    """
    subject = message.subject
    question = message.question
    if message.kind is DeliveryKind.NOTICE:
        return notice_spans(message)
    if message.kind is DeliveryKind.RESULT:
        summary = (f"\n{line}" for line in summary_lines(subject.result or {}))
        stop = (f"\n{subject.group_stop}",) if subject.group_stop else ()
        return f"{_headline(subject)} ", *job_outcome_spans(subject, again=""), *stop, *summary
    if message.kind is DeliveryKind.QUESTION_CLOSED and question is not None:
        return (
            f"{question.name} ",
            *resolution_spans(question),
            f"\nquestion: {question.text}",
        )
    return (_brief_text(message, reply),)


def _brief_text(message: Message, reply: str) -> str:
    subject = message.subject
    question = message.question
    payload = message.payload or {}
    retrying = message.kind is DeliveryKind.STATUS and subject.status is Status.RETRYING
    if retrying and subject.next_retry_at is not None:
        when = format_time(subject.next_retry_at)
        return f"{_headline(subject)} will be retried at {when}: {subject.error}"
    if message.kind not in (DeliveryKind.QUESTION, DeliveryKind.REMINDER) or question is None:
        return render_plain(message)
    lines = list(_brief_question(question, reply))
    if message.delegation is not None:
        lines.insert(1, message.delegation.text)
    if message.kind is DeliveryKind.REMINDER:
        lines.insert(0, str(payload.get("text") or f"{question.name} is waiting for an answer"))
    return "\n".join(lines)


def _brief_question(question: Question, reply: str) -> Iterator[str]:
    approval = question.kind is QuestionKind.APPROVAL
    yield f"{question.name} {'asks for approval' if approval else 'asks'}: {question.text}"
    choices = question.choices[:_CHOICES]
    yield from (f"{number}. {choice['label']}" for number, choice in enumerate(choices, 1))
    if (omitted := len(question.choices) - _CHOICES) > 0:
        yield f"and {omitted} more"
    if question.expires_at is not None:
        yield f"expires at {format_time(question.expires_at)}"
    response = "approve, or deny with a reason" if approval else "your answer"
    yield f"{reply}: {response}"


def format_time(when: datetime) -> str:
    """Format a time: `22 Nov 2026, 07:48 UTC`."""
    return f"{when.day} {when:%b %Y, %H:%M %Z}".rstrip()


def title_before(question: Question, title: str) -> str:
    """Return the title of a job, or "" where the text of its question begins with it."""
    return "" if question.text.strip().startswith(title.strip()) else title


def question_lines(
    question: Question, changes: str = "", delegation: Delegation | None = None
) -> Iterator[str]:
    """Yield the question with its context, changes, choices, expiry and the command to answer."""
    approval = question.kind is QuestionKind.APPROVAL
    yield f"{question.name} {'asks for approval' if approval else 'asks'}: {question.text}"
    yield from (f"| {line}" for line in (question.context_snippet or "").splitlines())
    if action := question.approved_action:
        yield f"if approved: {action_text(action)}"
    if missing := missing_diff(question):
        yield missing
    if changes:
        yield f"{changes}: draftsman diff {question.name}"
    for number, choice in enumerate(question.choices, 1):
        description = f" - {choice['description']}" if choice.get("description") else ""
        yield f"  {number}  {choice['label']}{description}"
    if question.escalated_at is not None:
        yield f"not answered in time; escalated to {question.escalate_to}"
    if question.expires_at is not None:
        yield f"expires at {question.expires_at.isoformat(timespec='seconds')}"
    if delegation is not None:
        yield f"{delegation.text}, until {format_time(delegation.until)}"
    yield how_to_answer(question)


def holder_text(question: OpenQuestion) -> str:
    """Return the person who works on an open question, or was asked to; "" without any."""
    if question.acknowledged_by:
        return f"{question.acknowledged_by} works on it"
    return f"delegated to {question.delegated_to}" if question.delegated_to else ""


def missing_diff(question: Question) -> str:
    """Return why an approval has no patch; empty if it has one, and for other questions."""
    if question.kind is not QuestionKind.APPROVAL or is_diff(question.context_snippet or ""):
        return ""
    reasons = {None: "diff not available", _NOTHING: "no changes so far"}
    return reasons.get(question.patch_sha256, "")


def how_to_answer(question: Question) -> str:
    """Return the command that answers a question."""
    if question.kind is QuestionKind.APPROVAL:
        return f"draftsman approve {question.name}, or draftsman deny {question.name} --reason …"
    if not question.choices:
        return f"draftsman answer {question.name} 'your answer'"
    free_text = ", or free text" if question.freeform_allowed else ""
    return f"draftsman answer {question.name} NUMBER{free_text}"


def resolution_text(question: Question) -> str:
    """Return the resolution of a question: `was answered by anna: red`."""
    return spans_text(resolution_spans(question))


def resolution_spans(question: Question) -> Spans:
    """Return `resolution_text` with references to the people; the last span is their text."""
    if question.status is QuestionStatus.OPEN:
        return ("is open", "")
    resolution = question.resolution or {}
    outcome = question.outcome
    by: tuple[Span, ...] = actor_spans(resolution.get("by", ()))
    if question.rule_text:
        by = (question.rule_text,)
    elif not by and resolution.get("via") == "policy":
        by = ("policy",)
    text = question.answer_text() or resolution.get("reason")
    verb = outcome if outcome == "expired" else f"was {outcome}"
    self_approval = " (own request)" if resolution.get("self_approved") else ""
    people = (" by ", *by, self_approval) if by else ()
    return verb, *people, f": {text}" if text else ""


def already_recorded(verdict: Verdict) -> str:
    """Return the reply to a person whose earlier response counts, as plain text."""
    if not verdict.resolved:
        return (
            f"{verdict.name}: your approval is already recorded, {verdict.votes} of"
            f" {verdict.quorum}."
        )
    resolution = verdict.resolution or {}
    kind = _NOUNS.get(str(resolution.get("outcome")), "answer")
    text = f": {verdict.answer_text}" if verdict.answer_text else ""
    return f"{verdict.name}: your {kind} is already recorded{text}."


def job_outcome_text(subject: Subject, again: str | None = None) -> str:
    """Return the outcome of a job, with the reason if it did not complete.

    `again` tells how to retry the job; default: the command.
    """
    return spans_text(job_outcome_spans(subject, again))


def job_outcome_spans(subject: Subject, again: str | None = None) -> Spans:
    """Return `job_outcome_text` with references to people; the last span is reason or error."""
    again = f"draftsman retry {subject.name}" if again is None else again
    then = f"; to retry: {again}" if again else ""
    by: Spans
    match subject.status:
        case Status.CANCELED:
            by = (" by ", ActorRef(subject.canceled_by)) if subject.canceled_by else ()
            reason = f": {subject.cancel_reason}" if subject.cancel_reason else ""
            return "was canceled", *by, reason
        case Status.FAILED if subject.denied:
            by = (" by ", *actor_spans(subject.denied_by)) if subject.denied_by else ()
            reason = f": {subject.denial_reason}" if subject.denial_reason else ""
            return "was denied", *by, f"{reason}{then}"
        case Status.FAILED | Status.DEAD_LETTER:
            return _ENDED[subject.status], f": {subject.error}{then}"
        case Status.EXPIRED:
            return "expired", f": no answer in time{then}"
        case _:
            return humanize(subject.status), ""


def _headline(subject: Subject) -> str:
    return f"{subject.name} {subject.title!r}"


def _state(subject: Subject) -> str:
    pause = pause_text(subject)
    state = state_text(subject) + (f", {pause}" if pause else "")
    if subject.status is Status.RETRYING and subject.next_retry_at is not None and not pause:
        return f"{state} at {subject.next_retry_at.isoformat(timespec='seconds')}: {subject.error}"
    return state


def _result(result: dict[str, Any] | None) -> Iterator[str]:
    if result:
        yield from summary_lines(result)
        yield from (line for line in (change_summary(result), counts_summary(result)) if line)
