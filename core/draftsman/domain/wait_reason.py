"""Why a job is where it is: one primary reason, and what happens next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from draftsman.domain.ids import actor_name, worker_name
from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.question import GATE_ENDS, Question, QuestionKind, QuestionStatus
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.domain.retries.retry_policy import layer
from draftsman.domain.text import first_line
from draftsman.errors import CommandHint


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What decides where a job goes next, read in one snapshot.

    `silent` and `due_in` are in seconds; `ahead` is counted up to 1,000.
    """

    number: int
    status: Status
    queue: str
    type: str
    run_at: datetime | None
    next_retry_at: datetime | None
    last_error: str | None
    error_class: str | None
    run_count: int
    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int
    worker_id: UUID | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_reason: str | None
    claimable: bool
    ahead: int
    workers: int
    able: int
    slots: int
    host: str | None
    """That of its worker, while it is registered."""
    silent: float | None
    due_in: float | None


@dataclass(frozen=True, slots=True)
class WaitReason:
    """`reason` is a stable word, `text` the sentence, `then` what a person can do or expect.

    `due_in` is in seconds by the database's clock, of what waits for its time.
    """

    status: Status
    reason: str
    text: str
    then: str
    due_in: float | None = None
    parts: tuple[str | CommandHint, ...] = ()
    """`then` in parts: a front end that is no terminal words its commands in its own way."""


NextStep = str | tuple[str | CommandHint, ...]
"""What a person can do or expect: words, and commands among them."""


def explain(facts: JobFacts, question: Question | None) -> WaitReason:
    """Return the one reason that keeps the job where it is.

    `question` is the open question of the job, or the one whose time made the job expire.
    """
    reason, text, then = _reason(facts, question)
    parts = (then,) if isinstance(then, str) else then
    return WaitReason(facts.status, reason, text, "".join(map(str, parts)), facts.due_in, parts)


def _reason(facts: JobFacts, question: Question | None) -> tuple[str, str, NextStep]:
    if facts.status is Status.EXPIRED and question is not None:
        then = (
            _command("retry", f"D-{facts.number}"),
            " goes on from its last checkpoint and asks again; ",
            "for more time set expires_in, of the question or of [questions]",
        )
        return "expired", expiry_text(question), then
    if facts.status in TERMINAL:
        if facts.status is Status.COMPLETED:
            return (
                "ended",
                "it is over",
                ("nothing follows; ", _command("retry", "--again"), " runs it once more"),
            )
        goes_on = ("nothing follows; ", _command("retry"), " goes on from its last checkpoint")
        if facts.error_class == ErrorClass.DENIED:
            return "denied", facts.last_error or "denied", (*goes_on, ", and asks again")
        if facts.status is Status.CANCELED:
            return "ended", _canceled(facts), goes_on
        return "ended", facts.last_error or "it is over", goes_on
    if question is not None:
        return _asked(question)
    if facts.claimable:
        return _queued(facts)
    if facts.status in (Status.SCHEDULED, Status.RETRYING):
        return _due(facts)
    return _held(facts)


def expiring_question(asked: Sequence[Question]) -> Question | None:
    """Return which of a job's questions, in the order asked, made the job expire."""
    expired = (one for one in reversed(asked) if one.status is QuestionStatus.EXPIRED)
    return next((one for one in expired if one.on_expire in GATE_ENDS), None)


def expiry_text(question: Question) -> str:
    """Return when a question expired, after how long, by which rule, and its text."""
    assert question.expires_at is not None  # noqa: S101 - what never expires did not
    gate = question.kind is QuestionKind.APPROVAL
    given = _span((question.expires_at - question.asked_at).total_seconds())
    rule = f"on_expire = {str(question.on_expire)!r}"
    if question.escalated_at is not None:
        rule += f"; it was escalated to {question.escalate_to}"
    return (
        f"{question.name} expired at {question.expires_at:%Y-%m-%d %H:%M %Z}:"
        f" no {'decision' if gate else 'answer'} within {given} ({rule}): {question.text}"
    )


def _canceled(facts: JobFacts) -> str:
    by = f" by {actor_name(facts.cancel_requested_by)}" if facts.cancel_requested_by else ""
    return f"canceled{by}{f': {facts.cancel_reason}' if facts.cancel_reason else ''}"


def _asked(question: Question) -> tuple[str, str, NextStep]:
    gate = question.kind is QuestionKind.APPROVAL
    who = f" by {', '.join(question.approvers)}" if question.approvers else ""
    until = f"; expires {question.expires_at:%Y-%m-%d %H:%M %Z}" if question.expires_at else ""
    verb = "approve or deny" if gate else "answer"
    wants = "a decision" if gate else "an answer"
    text = f"{question.name} waits for {wants}{who}: {question.text}"
    command = _command("approve" if gate else "answer", question.name)
    return "question", text, (f"{verb} it with: ", command, until)


def _queued(facts: JobFacts) -> tuple[str, str, NextStep]:
    if not facts.workers:
        return (
            "no_worker",
            f"no live worker serves the queue {facts.queue!r}",
            (
                "start one: ",
                _command("up")
                if facts.queue == "default"
                else _command("worker", f"--queue {facts.queue}"),
            ),
        )
    if not facts.able:
        return (
            "unknown_type",
            f"no live worker knows the type {facts.type!r}",
            "a worker will claim it and fail it; add the type to [handlers] first",
        )
    if facts.ahead:
        more = "at least " if facts.ahead >= 1000 else ""
        return (
            "behind",
            f"{more}{facts.ahead} jobs are before it in {facts.queue!r}",
            f"{facts.slots} slots work on the queue",
        )
    return "next", f"it is first in {facts.queue!r}", "the next free slot takes it"


def _due(facts: JobFacts) -> tuple[str, str, NextStep]:
    seconds = max(0.0, facts.due_in or 0.0)
    when = f"in {_span(seconds)}" if seconds else "now; the leader promotes it"
    served: tuple[str | CommandHint, ...] = ()
    if not facts.workers:
        served = ("; but no live worker serves its queue: ", _command("up"))
    if facts.status is Status.SCHEDULED:
        return "scheduled", "it waits for its time", (f"due {when}", *served)
    spent = layer(
        facts.error_class,
        attempts=facts.attempts,
        max_attempts=facts.max_attempts,
        retry_count=facts.retry_count,
        max_retries=facts.max_retries,
    )
    error = first_line(facts.last_error or "", 300)
    then = (f"tried again {when}", *served, f" ({spent})")
    return "backoff", f"run {facts.run_count} failed: {error}", then


def _held(facts: JobFacts) -> tuple[str, str, NextStep]:
    worker = f"worker {worker_name(facts.worker_id)}" if facts.worker_id else "its worker"
    worker += f" on {facts.host}" if facts.host else ""
    if facts.status is Status.CLAIMED:
        return "claimed", f"{worker} claimed it ahead", "it starts in that worker's next free slot"
    if facts.cancel_requested_at is not None:
        return "canceling", f"{worker} was told to stop it", "it ends as canceled"
    silent = f"; last heartbeat {_span(facts.silent)} ago" if facts.silent is not None else ""
    return (
        "running",
        f"{worker} is running it{silent}",
        ("follow it: ", _command("logs", f"-f D-{facts.number}")),
    )


def _command(name: str, arguments: str = "") -> CommandHint:
    return CommandHint(name, arguments, lead="")


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
