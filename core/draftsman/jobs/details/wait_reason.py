"""The reason for the current status of a job, and the next step. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from draftsman.errors import CommandHint
from draftsman.formats.amounts import counted
from draftsman.formats.times import format_time, span
from draftsman.ids import account_name, job_name, pause_name, worker_name
from draftsman.jobs.job import FAILURES, LEASED, TERMINAL, Status
from draftsman.jobs.job_summary import Dismissal
from draftsman.jobs.retries import ErrorClass, next_try_of
from draftsman.jobs.status_display import STATUSES
from draftsman.questions.question import (
    BUDGET_KEY,
    GATE_ENDS,
    Question,
    QuestionKind,
    QuestionStatus,
    needed_answers,
)
from draftsman.queues.queue_models import reservation_text
from draftsman.text import STORED_SENTENCE, first_line

if TYPE_CHECKING:
    from draftsman.jobs.job import Job
    from draftsman.queues.usage_limits import LimitUse
    from draftsman.workflows.dependencies import Wait


@dataclass(frozen=True, slots=True)
class JobFacts:
    """The facts that decide on the next step of a job, read in one snapshot.

    `silent` (since the last heartbeat) and `due_in` are in seconds; `ahead` is at most 1,000.
    """

    number: int
    status: Status
    queue: str
    type: str
    run_at: datetime | None
    next_retry_at: datetime | None
    last_error: str | None = field(metadata=STORED_SENTENCE)
    error_class: str | None
    run_count: int
    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int
    worker_id: UUID | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_reason: str | None = field(metadata=STORED_SENTENCE)
    claimable: bool
    reserved_for: int | None
    """The job that the queue is reserved for, possibly the job itself."""
    reserved_by: str | None
    reserved_until: datetime | None
    hold: str | None
    concurrency_key: str | None
    held_by: str | None
    key_holder: int | None
    """The job that holds the concurrency key, possibly the job itself."""
    parents: Sequence[tuple[int, str]]
    """The first parents that have not ended, and their statuses; there are `parent_count`."""
    parent_count: int
    type_paused: bool
    """Whether `pause_reason` is that of the type rather than of the queue."""
    pause_reason: str | None
    """Reason of a pause of the queue or the type; None: not paused."""
    paused_by: str | None
    paused_at: datetime | None
    job_paused: bool
    """Whether the pause is that of the job itself."""
    has_log: bool
    """Whether a run wrote a line, or its agent did something."""
    has_late_answer: bool
    """Whether an answer arrived after its question had made the job expire."""
    started: bool
    """Whether a worker started it; a skipped job has only a run that records this."""
    has_checkpoint: bool
    ahead: int
    workers: int
    capable_workers: int
    slots: int
    host: str | None
    """Host of the worker, while it is registered."""
    heartbeat_age: float | None
    lost: bool
    """Whether the lease of the worker has ended, by the condition of its rescue."""
    due_in: float | None
    sleep_reason: str | None
    """The reason that its handler gave for a sleep."""
    cycle: Sequence[Wait] = ()
    """The jobs for which it waits, if it waits for itself."""
    limit: LimitUse | None = None
    """The limit in which the job waits for a place."""
    type_app: str | None = None
    """The app whose worker served the type last; "" without an app."""
    absent_agent: str | None = None
    """The agent of a failed job whose program the worker did not find."""
    debounce_left: float | None = None
    """Seconds until a debounced job starts, whatever further requests there are."""
    awaits_trial: bool = False
    """Whether it was lost with other jobs, and waits until it may run again."""
    on_trial: int | None = None
    """The job that runs before it, of those that were lost with it."""
    dismissed_by: str | None = None
    """Who took its failure out of attention."""
    dismissed_at: datetime | None = None
    dismissal_reason: str | None = None
    retried_as: int | None = None
    """The retry that stands for the job."""

    @property
    def dismissal(self) -> Dismissal | None:
        """The dismissal of its failure."""
        return Dismissal.of(self.dismissed_by, self.dismissed_at, self.dismissal_reason)


@dataclass(frozen=True, slots=True)
class Need:
    """What an open question needs, and how to answer it."""

    question: str
    text: str
    next_spans: tuple[str | CommandHint, ...]

    def next_step_in(self, show: Callable[[CommandHint], str] = str) -> str:
        """Return how to answer, with the command as `show` words it."""
        return _worded(self.next_spans, show)


@dataclass(frozen=True, slots=True)
class WaitReason:
    """The reason of a status, with its stable name `reason`, and a sentence `text`.

    `next_step` says what follows, or what to do. `due_in` is in seconds by the database's clock,
    for a scheduled job. Of several open questions, `text` counts what they need, and `needs` has
    each, with its step.
    """

    status: Status
    reason: str
    text: str
    next_step: str
    due_in: float | None = None
    next_spans: tuple[str | CommandHint, ...] = ()
    """`next_step` in spans, so that a front end can word the commands in its own way."""
    text_spans: Moments = ()
    """`text` in spans, so that a front end can show its times in its own way."""
    paused: bool = False
    """Whether the job itself is paused; else its queue may be."""
    dismissal: Dismissal | None = None
    """Who took its failure out of attention, when and why."""
    retried_as: int | None = None
    """The retry that stands for the job."""
    needs: tuple[Need, ...] = ()
    """What each open question needs, of a job with several."""

    @property
    def is_denied(self) -> bool:
        """Whether it failed because a person denied its question, and was not retried."""
        return self.reason == "denied"

    @property
    def lacks_worker(self) -> bool:
        """Whether no live worker serves its queue, or none of them handles its type."""
        return self.reason in ("no_worker", "unknown_type")

    @property
    def shown_as_paused(self) -> bool:
        """Whether the job is shown as paused: a run that was not parked yet is running."""
        return self.paused and self.status not in LEASED

    @property
    def statement(self) -> str:
        """The status and its reason; the reason of a paused job begins with its status."""
        return self.text if self.shown_as_paused else f"{STATUSES[self.status].word}: {self.text}"

    def next_step_in(self, show: Callable[[CommandHint], str]) -> str:
        """Return the next step, with the commands as `show` words them."""
        return _worded(self.next_spans, show)

    def next_lines(self, show: Callable[[CommandHint], str] = str) -> list[str]:
        """Return the next step, and of each of several questions what it needs, line by line."""
        needs = [f"{need.text}; {need.next_step_in(show)}" for need in self.needs]
        return [self.next_step_in(show), *needs] if self.next_spans else needs


def _worded(spans: tuple[str | CommandHint, ...], show: Callable[[CommandHint], str]) -> str:
    return "".join(span if isinstance(span, str) else show(span) for span in spans)


NextStep = str | tuple[str | CommandHint, ...]
"""The next step: text and commands."""
Moments = tuple[str | datetime, ...]
"""A text, in spans: a front end shows its times in the time zone of the reader."""


def moments_text(spans: str | Moments) -> str:
    """Return a text with its times in UTC."""
    return "".join(format_time(span) if isinstance(span, datetime) else span for span in spans)


def explain(facts: JobFacts, questions: Sequence[Question]) -> WaitReason:
    """Return the primary reason of the job's status.

    `questions` are the open questions of the job, or the question that made it expire.
    """
    reason, text, then = _reason(facts, questions)
    spans = (then,) if isinstance(then, str) else then
    text_spans = (text,) if isinstance(text, str) else text
    return WaitReason(
        status=facts.status,
        reason=reason,
        text=moments_text(text_spans),
        text_spans=text_spans,
        next_step="".join(map(str, spans)),
        due_in=None if facts.awaits_trial else facts.due_in,
        next_spans=spans,
        paused=facts.job_paused and facts.status not in TERMINAL,
        dismissal=facts.dismissal,
        retried_as=facts.retried_as,
        needs=tuple(_needs(questions)) if reason in _ASKING and len(questions) > 1 else (),
    )


_ASKING: Final = ("question", "paused")
"""Reasons of a job that people may answer."""


def _reason(facts: JobFacts, questions: Sequence[Question]) -> tuple[str, str | Moments, NextStep]:
    if facts.status is Status.EXPIRED and questions:
        then: NextStep = (
            f"{_retry(facts)} and ask again: ",
            _command("retry", job_name(facts.number)),
            "; to allow more time, set expires_in of the question or in [questions]",
        )
        if facts.has_late_answer:
            late = _command("retry", f"{job_name(facts.number)} --with-answer")
            then = ("to run it with the late answer: ", late, "; ", *then)
        return "expired", expiry_spans(questions[0]), then
    if facts.status in TERMINAL:
        return _ended(facts)
    if facts.job_paused:
        return _job_paused(facts, questions)
    if questions:
        return _waiting_for_answers(questions)
    waits = facts.hold == "parents" or (facts.parents and facts.status is Status.SCHEDULED)
    if facts.cycle or waits:
        return _waiting_for_jobs(facts)
    if facts.status in (Status.QUEUED, Status.RESUMED):
        return _queued(facts) if facts.claimable else _held(facts)
    if facts.status in (Status.SCHEDULED, Status.RETRYING):
        return _due(facts)
    return _claimed_or_running(facts)


def _ended(facts: JobFacts) -> tuple[str, str, NextStep]:
    name = job_name(facts.number)
    if facts.retried_as is not None:
        retry_name = job_name(facts.retried_as)
        text = f"{facts.last_error or facts.status}; retried as {retry_name}"
        return "retried", text, ("to see the retry: ", _command("show", retry_name))
    if facts.status is Status.COMPLETED:
        result = ("to see its result: ", _command("show", name))
        again = ("; to run it again: ", _command("retry", f"{name} --again"))
        return "ended", "finished", (*result, *again)
    if facts.error_class == ErrorClass.DENIED:
        asks = (f"{_retry(facts)} and ask again: ", _command("retry", name))
        return "denied", facts.last_error or "denied", asks
    retry = (f"{_retry(facts)}: ", _command("retry", name))
    if facts.status is Status.CANCELED:
        return "ended", _canceled(facts), retry
    if facts.dismissal is not None:
        undo = ("; to take it back: ", _command("undismiss", name))
        text = f"{facts.last_error}; dismissed {facts.dismissal}"
        return "dismissed", text, (*retry, *undo)
    dismiss = ("; to take it out of attention: ", _command("dismiss", name))
    if facts.absent_agent is not None:
        check = _command("agents check", facts.absent_agent)
        where = "to check the agent on the host of the worker: "
        error = facts.last_error or "failed"
        return "no_program", error, (where, check, "; ", *retry, *dismiss)
    if facts.status not in FAILURES:
        return "ended", facts.last_error or "finished", retry
    log = ("; to read its log: ", _command("logs", name)) if facts.has_log else ()
    return "ended", failure_text(facts), (*retry, *log, *dismiss)


def failure_text(job: Job | JobFacts) -> str:
    """Return the error of a failed job, and whether it will be retried, in words for people."""
    error = job.last_error or "failed"
    if job.status is Status.DEAD_LETTER:
        return f"{error}; will not be retried: {_used_up(job)}"
    if job.status is Status.FAILED and job.error_class != ErrorClass.DENIED:
        return f"{error}; will not be retried: {_FINAL.get(job.error_class or '', _LOST)}"
    return error


_FINAL: Final[Mapping[str, str]] = {
    ErrorClass.PERMANENT: "another run would fail in the same way",
    ErrorClass.INVALID_OUTPUT: "its output is invalid",
}
"""Why a job failed with attempts and retries left, by the class of its error."""
_LOST: Final = "its option on_lost ends it when its run is lost"


def _used_up(job: Job | JobFacts) -> str:
    """Return which budget of a dead letter is used up; the other may have some left."""
    if job.attempts >= job.max_attempts:
        return _spent(job.max_attempts, "attempt", "attempts")
    return _spent(job.max_retries, "retry", "retries") if job.max_retries else "it has no retries"


def _spent(most: int, unit: str, units: str) -> str:
    return f"its only {unit} is used" if most == 1 else f"all {most} {units} are used"


def _retry(facts: JobFacts) -> str:
    """Return what a retry of the finished job does."""
    if not facts.started:
        return "it never started; to run it"
    return "to retry from the last checkpoint" if facts.has_checkpoint else "to retry"


def expiring_question(questions: Sequence[Question]) -> Question | None:
    """Return the question, of those of a job in order, that made the job expire."""
    expired = (item for item in reversed(questions) if item.status is QuestionStatus.EXPIRED)
    return next((item for item in expired if item.on_expire in GATE_ENDS), None)


def expiry_spans(question: Question) -> Moments:
    """Return when a question expired, after which period, and its text."""
    assert question.expires_at is not None  # noqa: S101 - an expired question has an expiry
    kind = "decision" if question.kind is QuestionKind.APPROVAL else "answer"
    period = span((question.expires_at - question.asked_at).total_seconds())
    if question.escalated_at is not None:
        period += f" (escalated to {question.escalate_to})"
    text = f": no {kind} within {period}: {question.text}"
    return f"{question.name} expired at ", question.expires_at, text


def _canceled(facts: JobFacts) -> str:
    by = f" by {account_name(facts.cancel_requested_by)}" if facts.cancel_requested_by else ""
    return f"canceled{by}{f': {facts.cancel_reason}' if facts.cancel_reason else ''}"


def _waiting_for_answers(
    questions: Sequence[Question],
) -> tuple[str, str, tuple[str | CommandHint, ...]]:
    """Return the need of a question, or the number of answers; of alternatives, one counts."""
    needs = _needs(questions)
    if len(needs) == 1:
        return "question", needs[0].text, needs[0].next_spans
    first = "the first of " if _are_alternatives(questions) else ""
    return "question", f"needs {first}{needed_answers([item.kind for item in questions])}", ()


def _needs(questions: Sequence[Question]) -> list[Need]:
    """Return what each question needs, in the order asked."""
    return [_need(question) for question in sorted(questions, key=lambda item: item.ordinal)]


def _are_alternatives(questions: Sequence[Question]) -> bool:
    groups = {question.alternative_of for question in questions}
    return len(questions) > 1 and len(groups) == 1 and None not in groups


def _need(question: Question) -> Need:
    approval = question.kind is QuestionKind.APPROVAL
    names = ", ".join(question.approvers)
    if not approval and question.key != BUDGET_KEY:
        people = f" ({names} may answer, too)" if names else ""
    else:
        people = f" from {names}" if names else ""
    until = f"; expires {format_time(question.expires_at)}" if question.expires_at else ""
    *decisions, last = question.decisions or ("answer",)
    verb = f"{', '.join(decisions)} or {last}" if decisions else last
    needs = f"{'approval' if approval else 'an answer'}{people}"
    text = f"{question.name} needs {needs}: {question.text}"
    command = _command(question.verb, question.name)
    return Need(question.name, text, (f"to {verb}: ", command, until))


def _job_paused(facts: JobFacts, questions: Sequence[Question]) -> tuple[str, Moments, NextStep]:
    text: Moments = ("paused ", *_pause(facts))
    if facts.status in LEASED:
        text = (*text, "; its worker is stopping it")
    resume = ("to resume it: ", _command("resume", job_name(facts.number)))
    if not questions:
        return "paused", text, resume
    _, needs, steps = _waiting_for_answers(questions)
    return "paused", (*text, f"; {needs}"), (*resume, *(("; ", *steps) if steps else ()))


def _held(facts: JobFacts) -> tuple[str, str | Moments, NextStep]:
    if facts.pause_reason is None and facts.hold == "key":
        return _waiting_for_key(facts)
    if facts.pause_reason is None and facts.hold == "limit" and _is_unhandled(facts):
        return _unhandled(facts)
    if facts.pause_reason is None and facts.limit is not None:
        return _waiting_for_place(facts, facts.limit)
    if facts.pause_reason is None and facts.reserved_for is not None:
        return _reserved(facts, facts.reserved_for)
    if facts.pause_reason is None:
        return "released", "its type was paused", "the leader will queue it within a minute"
    name = pause_name(facts.queue, facts.type if facts.type_paused else None)
    option = f" --type {facts.type}" if facts.type_paused else ""
    return (
        "paused",
        (f"the {name} is paused ", *_pause(facts)),
        ("to resume it: ", _command("queues resume", f"{facts.queue}{option}")),
    )


def _waiting_for_jobs(facts: JobFacts) -> tuple[str, str, NextStep]:
    from draftsman.workflows.dependencies import cycle_text, parents_text

    if facts.cycle:
        last = _command("cancel", job_name(facts.cycle[-1].job))
        return "cycle", f"waits for itself: for {cycle_text(facts.cycle)}", ("to end it: ", last)
    first = job_name(facts.parents[0][0]) if facts.parents else job_name(facts.number)
    seconds = facts.due_in or 0.0
    due = f"; due in {span(seconds)}" if seconds > 0 and facts.hold else ""
    text = f"waits for {parents_text(facts.parents, facts.parent_count)}{due}"
    return "parents", text, ("for its state: ", _command("why", first))


def _waiting_for_key(facts: JobFacts) -> tuple[str, str, NextStep]:
    key = f"the concurrency key {facts.concurrency_key!r}"
    if facts.key_holder is None:
        return "key", f"{key} is free", "the leader will queue it within a minute"
    holder = job_name(facts.key_holder)
    return "key", f"{holder} holds {key}", ("for its state: ", _command("why", holder))


def _waiting_for_place(facts: JobFacts, limit: LimitUse) -> tuple[str, str, NextStep]:
    full = limit.full()
    if not full:
        return "limit", "its limit has a free place", "the leader will queue it within a minute"
    first = f"{_ahead(facts)}; " if facts.ahead else ""
    return "limit", full, (f"{first}for all limits: ", _command("limits"))


def _ahead(facts: JobFacts) -> str:
    bound = "at least " if facts.ahead >= 1000 else ""
    return f"{bound}{counted(facts.ahead, 'job is', 'jobs are')} ahead of it"


def _reserved(facts: JobFacts, job: int) -> tuple[str, str, NextStep]:
    text = reservation_text(facts.queue, job, facts.reserved_by or "", facts.reserved_until)
    release = _command("queues release", facts.queue)
    holder = _command("why", job_name(job))
    return "reserved", text, ("for its state: ", holder, "; to end the reservation: ", release)


def _pause(facts: JobFacts) -> Moments:
    assert facts.paused_at is not None  # noqa: S101 - the job or its queue is paused
    by = f" by {account_name(facts.paused_by or '')}: {facts.pause_reason}"
    return "since ", facts.paused_at, by


def _queued(facts: JobFacts) -> tuple[str, str | Moments, NextStep]:
    if not facts.workers:
        text = f"no live worker serves the queue {facts.queue!r}"
        return "no_worker", text, ("to start a worker: ", _start(facts))
    if _is_unhandled(facts):
        return _unhandled(facts)
    if facts.ahead:
        text = f"{_ahead(facts)} in the queue {facts.queue!r}"
        return "behind", text, f"{facts.slots} slots serve the queue"
    if facts.reserved_until is not None:
        until = (f"the queue {facts.queue!r} is reserved for it until ", facts.reserved_until)
        return "next", until, "the next free slot claims it"
    return "next", f"first in the queue {facts.queue!r}", "the next free slot claims it"


def _is_unhandled(facts: JobFacts) -> bool:
    return facts.workers > 0 and not facts.capable_workers


def _unhandled(facts: JobFacts) -> tuple[str, str, NextStep]:
    text = f"no live worker of the queue {facts.queue!r} handles the type {facts.type!r}"
    return "unknown_type", text, (*_start_with_type(facts), "; to end it: ", _cancel(facts))


def _cancel(facts: JobFacts) -> CommandHint:
    return _command("cancel", job_name(facts.number))


def _start_with_type(facts: JobFacts) -> tuple[str | CommandHint, ...]:
    """Return how to start a worker that handles the type of a job."""
    if facts.type_app:
        return "to start one: ", _start(facts)
    worker = _command("worker", f"--app MODULE{_queue_option(facts)}")
    return "to start one with the module of the type: ", worker, ", or add it to [handlers]"


def _start(facts: JobFacts) -> CommandHint:
    """Return the command that starts a worker of the queue, with the app that had the type."""
    app = f"--app {facts.type_app}" if facts.type_app else ""
    if facts.queue == "default" and not facts.workers:
        return _command("up", app)
    return _command("worker", f"{app}{_queue_option(facts)}".strip())


def _queue_option(facts: JobFacts) -> str:
    return "" if facts.queue == "default" else f" --queue {facts.queue}"


def _due(facts: JobFacts) -> tuple[str, str | Moments, NextStep]:
    seconds = max(0.0, facts.due_in or 0.0)
    moment = facts.run_at if facts.status is Status.SCHEDULED else facts.next_retry_at
    at = f", at {format_time(moment)}" if moment else ""
    when = f"in {span(seconds)}{at}" if seconds else "now; the leader will queue it"
    no_worker: tuple[str | CommandHint, ...] = ()
    if facts.pause_reason is not None:
        name = pause_name(facts.queue, facts.type if facts.type_paused else None)
        no_worker = (f"; but the {name} is paused {_pause(facts)}",)
    elif not facts.workers:
        no_worker = ("; but no live worker serves its queue; to start one: ", _start(facts))
    elif _is_unhandled(facts):
        no_worker = ("; but no live worker of its queue has its type; ", *_start_with_type(facts))
    if facts.status is Status.SCHEDULED and facts.debounce_left is not None:
        latest = f"; with further requests at the latest in {span(max(0.0, facts.debounce_left))}"
        text = "debounced: a further request replaces it and waits as long again"
        return "debounced", text, (f"due {when}{latest}", *no_worker)
    if facts.status is Status.SCHEDULED and facts.sleep_reason:
        return "scheduled", facts.sleep_reason, (f"due {when}", *no_worker)
    if facts.status is Status.SCHEDULED and not seconds:
        return "scheduled", "due now", ("the leader will queue it", *no_worker)
    if facts.status is Status.SCHEDULED:
        due: Moments = (f"due in {span(seconds)}", *((", at ", moment) if moment else ()))
        return "scheduled", due, ("the leader will queue it then", *no_worker)
    if facts.awaits_trial:
        return _awaits_trial(facts.on_trial, no_worker)
    following = next_try_of(facts.error_class, facts)
    error = first_line(facts.last_error or "", 300)
    then = (f"next retry {when} ({following})", *no_worker)
    return "backoff", f"run {facts.run_count} failed: {error}", then


def _awaits_trial(
    on_trial: int | None, no_worker: tuple[str | CommandHint, ...]
) -> tuple[str, str, NextStep]:
    """Explain the wait of a job that was lost with others."""
    text = "the worker was lost; jobs that were lost together run again one at a time"
    if on_trial is None:
        return "trial", text, ("its turn comes as soon as a leader chooses the next", *no_worker)
    before = f"{job_name(on_trial)} runs before it: "
    return "trial", text, (before, _command("why", job_name(on_trial)), *no_worker)


def _claimed_or_running(facts: JobFacts) -> tuple[str, str, NextStep]:
    worker = f"worker {worker_name(facts.worker_id)}" if facts.worker_id else "its worker"
    worker += f" on {facts.host}" if facts.host else ""
    if facts.lost:
        silent = "" if facts.heartbeat_age is None else f" for {span(facts.heartbeat_age)}"
        if facts.status is Status.CLAIMED:
            then = "the leader will queue it again"
        elif facts.cancel_requested_at is not None:
            then = "the leader will end it as canceled"
        else:
            then = "the leader will end this run, and on_lost of the job applies"
        steps = (f"{then}; for the workers: ", _command("workers"))
        return "lost", f"{worker} is lost: no heartbeat{silent}", steps
    if facts.status is Status.CLAIMED:
        return "claimed", f"prefetched by {worker}", "it starts in the worker's next free slot"
    if facts.cancel_requested_at is not None:
        return "canceling", f"{worker} is stopping it", "it will end as canceled"
    age = facts.heartbeat_age
    heartbeat = "" if age is None else f"; last heartbeat {span(age)} ago"
    return (
        "running",
        f"{worker} is running it{heartbeat}",
        ("to follow it: ", _command("logs", f"-f {job_name(facts.number)}")),
    )


def _command(name: str, arguments: str = "") -> CommandHint:
    return CommandHint(name, arguments, lead="")
