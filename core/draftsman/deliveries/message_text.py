"""Words of messages about jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from draftsman.deliveries.delivery import Message, Subject
from draftsman.formats.times import spelled_time
from draftsman.jobs.job import Status
from draftsman.jobs.status_display import STATUSES
from draftsman.people.spans import ActorRef, Spans, actor_spans, decode_spans, spans_text
from draftsman.text import humanize

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


def pause_text(subject: Subject) -> str:
    """Return `paused by anna: the API is down`; "" for a job that is not paused."""
    if subject.pause_reason is None:
        return ""
    return f"paused by {subject.paused_by}: {' '.join(subject.pause_reason.split())}"


def state_text(subject: Subject) -> str:
    """Return the status: `waiting for input: asks the same as D-141/1`."""
    return STATUSES[subject.status].word + same_question_text(subject)


def same_question_text(subject: Subject) -> str:
    """Return which question of another job is shown instead; "" for none."""
    return f": asks the same as {subject.asks_with}" if subject.asks_with else ""


def status_text(subject: Subject) -> str:
    """Return the status, with the time of a retry."""
    state = state_text(subject)
    if subject.status is Status.RETRYING and subject.next_retry_at is not None:
        return f"{state} at {spelled_time(subject.next_retry_at)}"
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
            return STATUSES[subject.status].predicate, f": {subject.error}{then}"
        case Status.EXPIRED:
            return "expired", f": no answer in time{then}"
        case _:
            return humanize(subject.status), ""
