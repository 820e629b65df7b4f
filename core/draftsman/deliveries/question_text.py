"""Words of messages about questions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from draftsman.agent_runs.changes.diff import is_diff
from draftsman.agent_runs.changes.shown_code import visible_lines
from draftsman.deliveries.documents.document import Text, Time
from draftsman.errors import CommandHint
from draftsman.formats.times import clock_with_zone
from draftsman.ids import job_name, question_name
from draftsman.jobs.job import Status
from draftsman.people.spans import Span, Spans, actor_spans, spans_text
from draftsman.questions.answer import Verdict
from draftsman.questions.question import (
    CHANGES_REQUESTED,
    OpenQuestion,
    Question,
    QuestionKind,
    QuestionStatus,
)
from draftsman.questions.review_comment import request_text

_RETRIED: Final = frozenset({Status.FAILED, Status.DEAD_LETTER, Status.CANCELED, Status.EXPIRED})
_NOTHING: Final = sha256(b"").hexdigest()
"""SHA-256 of the patch of a run that changed nothing."""
RESPONSES: Final = {
    "approved": "approval",
    "denied": "denial",
    CHANGES_REQUESTED: "request for changes",
}
"""What the response of a person is called, by its outcome; any other is an answer."""


def title_before(question: Question, title: str) -> str:
    """Return the title of a job, or "" where the text of its question begins with it."""
    return "" if question.text.strip().startswith(title.strip()) else title


def holder_text(question: OpenQuestion) -> str:
    """Return the person who works on an open question, or was asked to; "" without any."""
    if question.acknowledged_by:
        return f"{question.acknowledged_by} works on it"
    return f"delegated to {question.delegated_to}" if question.delegated_to else ""


def approvals_text(question: OpenQuestion) -> str:
    """Return how many of several approvals there are; "" without any."""
    count = len(question.approved_by)
    return f"{count} of {question.quorum} approvals" if count else ""


def visible_context(question: Question) -> str:
    """Return the context of a question; a diff as visible text."""
    context = question.context_snippet or ""
    return visible_lines(context) if is_diff(context) else context


def question_notes(question: Question) -> Iterator[str]:
    """Yield short facts of a question, which its messages, its page and its lines have."""
    if question.critical:
        yield "critical: sent in quiet hours, too"
    if "merge" in (question.action or {}) and not question.takes_changes:
        yield "a merge takes no requests for changes: deny it, and review the pull request"


def missing_diff(question: Question) -> str:
    """Return that an approval of work has no patch; empty for other questions.

    A job that works on no repository saves none, and nobody expects one.
    """
    if question.kind is not QuestionKind.APPROVAL or is_diff(question.context_snippet or ""):
        return ""
    return "no changes so far" if question.patch_sha256 == _NOTHING else ""


def has_saved_changes(question: Question) -> bool:
    """Return whether the work of a job had changed something when it asked a question."""
    return question.patch_sha256 not in (None, _NOTHING)


def has_patch(question: Question) -> bool:
    """Return whether an approval has a patch, or its context is one."""
    if question.kind is not QuestionKind.APPROVAL:
        return False
    return is_diff(question.context_snippet or "") or has_saved_changes(question)


def closed_text(question: Question) -> str:
    """Return how a question closed: `D-142/2 was answered by anna: red`."""
    return spans_text(closed_spans(question))


def closed_locally(question: Question, where: str = "") -> str:
    """Return `closed_text` for a terminal, with the channel and the local time."""
    at = question.closed_at
    return f"{closed_text(question)}{where}{'' if at is None else f', at {clock_with_zone(at)}'}"


def closed_spans(question: Question) -> Spans:
    """Return `closed_text` with references to the people; the last span is their text."""
    separator = ": " if question.has_changes_requested else " "
    return f"{question.name}{separator}", *resolution_spans(question)


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
    text = question.answer_text() or request_text(resolution.get("reason") or "", question.comments)
    verb = outcome if outcome == "expired" else f"was {outcome}"
    if question.has_changes_requested:
        verb = "changes were requested"
    self_approval = " (own request)" if resolution.get("self_approved") else ""
    people = (" by ", *by, self_approval) if by else ()
    return verb, *people, f": {text}" if text else ""


def refusal_text(verdict: Verdict) -> Text:
    """Return why an answer does not count; of a late one, also who was first and when."""
    reason = verdict.reason_spans or (
        verdict.reason or f"{verdict.name} does not accept this answer",
    )
    return reason if verdict.closed_at is None else (*reason, ", ", Time(verdict.closed_at, "on"))


def next_step(verdict: Verdict) -> CommandHint | None:
    """Return what the author of a late answer can do now; None for any other answer."""
    if not verdict.resolved and verdict.closed_at is None:
        return None
    if verdict.asked_again is not None:
        again = question_name(verdict.job, verdict.asked_again)
        return CommandHint("show", again, lead="to see it")
    return closed_step(verdict.job, verdict.job_status)


def closed_step(job: int, status: str | None) -> CommandHint:
    """Return what a person can do after a question has closed, in the status of its job."""
    if status in _RETRIED:
        return CommandHint("retry", job_name(job), lead="to run the job again")
    return CommandHint("show", job_name(job), lead="to see what the job does now")


def already_recorded(verdict: Verdict) -> str:
    """Return the reply to a person whose earlier response counts, as plain text."""
    if not verdict.resolved:
        return (
            f"{verdict.name}: your approval is already recorded, {verdict.votes} of"
            f" {verdict.quorum}."
        )
    resolution = verdict.resolution or {}
    kind = RESPONSES.get(str(resolution.get("outcome")), "answer")
    text = f": {verdict.answer_text}" if verdict.answer_text else ""
    return f"{verdict.name}: your {kind} is already recorded{text}."
