"""Header of the job screen: status, progress and next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from draftsman.deliveries.result_text import change_summary
from draftsman.entities import cells
from draftsman.entities.cells import Cell
from draftsman.errors import CommandHint
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.formats.truncation import truncate
from draftsman.ids import account_name
from draftsman.jobs.details.sections.facts import attempts_text
from draftsman.jobs.details.sections.runs import result_parts
from draftsman.jobs.details.wait_reason import (
    WaitReason,
    expiring_question,
    expiry_spans,
    failure_text,
    moments_text,
)
from draftsman.jobs.job import TERMINAL, Job, Status
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import Meaning
from draftsman.questions.question import QuestionKind
from draftsman_tui.common.jobs import status_text
from draftsman_tui.dashboard.jobs.details.phases import bar, job_phases
from draftsman_tui.dashboard.jobs.details.row_layout import Row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot

WHAT_NEXT: Final = 2
"""Index of the row with the condition that a job waits for."""
RESULT_LINES: Final = 3
"""Lines of a result without a summary to show."""
RESULT_LENGTH: Final = 160
"""Characters of these lines."""


def head(
    snapshot: JobSnapshot, now: datetime, width: int = 80, show: Callable[[CommandHint], str] = str
) -> list[Row]:
    """Return the rows of the header: three, and the bar of a card; `show` words commands."""
    job = snapshot.job
    paused = snapshot.why is not None and snapshot.why.shown_as_paused
    role = cells.job_status(job.status, job.error_class, paused=paused).role
    return [
        (
            Cell(status_text(job.status, paused=paused).plain, role),
            *_separated(_origin(job, now)),
        ),
        tuple(_separated(_progress(snapshot, now))[1:]),
        _what_next(snapshot, show),
        bar(job_phases(job, snapshot.details.runs, snapshot.details.questions, now), width),
    ]


def _origin(job: Job, now: datetime) -> Iterator[Cell]:
    asked = job.request
    if asked and asked.repo:
        yield Cell(one_line(asked.repo), "head")
    yield Cell(one_line(f"agent {asked.agent}" if asked and asked.agent else job.type))
    if asked:
        yield Cell(str(asked.mode))
    invoker = job.invoker_display_name or job.invoker_id
    yield Cell(one_line(f"by {invoker} ({job.source}), {times.ago(job.created_at, now)}"))


def _progress(snapshot: JobSnapshot, now: datetime) -> Iterator[Cell]:
    job = snapshot.job
    if until := _until(snapshot, now):
        yield until
    if job.finished_at:
        yield Cell(f"finished {times.ago(job.finished_at, now)}")
    predecessors = [
        job_in_chain.name
        for job_in_chain in snapshot.details.retry_chain
        if job_in_chain.number == job.retry_of
    ]
    successors = [
        job_in_chain.name
        for job_in_chain in snapshot.details.retry_chain
        if job_in_chain.retry_of == job.number
    ]
    yield from (Cell(f"retry of {name}", "calm") for name in predecessors)
    yield from (Cell(f"retried as {name}", "calm") for name in successors)
    if snapshot.details.group is not None:
        yield Cell(
            f"group {snapshot.details.group.name}: {snapshot.details.group.succeeded_text}", "key"
        )
    yield Cell(f"runs {job.run_count}" if job.run_count else "no runs yet")
    if job.attempts:
        yield Cell(attempts_text(job))
    yield Cell(f"retries {job.retry_count} of {job.max_retries}")
    if summary := change_summary(job.result or {}):
        yield Cell(one_line(summary), "good")
    if url := job.pr_url or (job.result or {}).get("pr_url"):
        yield Cell(one_line(str(url)), "key")


def _until(snapshot: JobSnapshot, now: datetime) -> Cell | None:
    """Return the countdown to the next retry, start or deadline."""
    if snapshot.over:
        return None
    if snapshot.open is not None:
        times_of_all = [question.expires_at for question in snapshot.open_questions]
        until = min((time for time in times_of_all if time is not None), default=None)
        if until is None:
            return Cell("never expires", "asks")
        return Cell(f"expires {times.until(until, now)}" if until > now else "expired", "asks")
    if snapshot.why is None or snapshot.why.due_in is None:
        return None
    seconds = snapshot.why.due_in - (now - snapshot.at).total_seconds()
    verb = "retried" if snapshot.job.status is Status.RETRYING else "starts"
    return Cell(f"{verb} {times.due(seconds)}", "warns")


def _what_next(snapshot: JobSnapshot, show: Callable[[CommandHint], str]) -> Row:
    job = snapshot.job
    if job.cancel_requested_by and job.status not in TERMINAL:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        by = account_name(job.cancel_requested_by)
        return (Cell(one_line(f"cancellation requested by {by}{reason}"), "bad"),)
    if snapshot.why is not None:
        is_running = job.status is Status.RUNNING
        role = "warns" if snapshot.why.paused else "asks" if snapshot.open else "head"
        lead = Cell("now  " if is_running else "waits  ", role)
        then = Cell(one_line(f"; {_then(snapshot, snapshot.why, show)}"), "dim")
        doing = (Cell(f"; {snapshot.doing}", "busy"),) if is_running and snapshot.doing else ()
        return (lead, Cell(one_line(snapshot.why.text)), *doing, then)
    if job.status is Status.COMPLETED:
        return (Cell("result  ", "good"), Cell(one_line(_summary(job))))
    if job.status is Status.CANCELED:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        by = account_name(job.cancel_requested_by or "")
        return (Cell(one_line(f"canceled by {by}{reason}")),)
    if job.error_class == ErrorClass.DENIED:
        return (
            Cell("decision  ", cells.ROLES[Meaning.DENIED]),
            Cell(one_line(str(job.last_error))),
        )
    if (
        job.status is Status.EXPIRED
        and (question := expiring_question(snapshot.details.questions)) is not None
    ):
        return (Cell("expired  ", "bad"), Cell(one_line(moments_text(expiry_spans(question)))))
    return (Cell("error  ", "bad"), Cell(one_line(failure_text(job))))


def _then(snapshot: JobSnapshot, why: WaitReason, show: Callable[[CommandHint], str]) -> str:
    """Return the hint, with the dashboard's keys where it has them."""
    several = len(snapshot.open_questions) > 1
    if why.paused:
        answer = "; a: answer" if snapshot.open is not None and not several else ""
        return f"Z: resume{answer}"
    if several:
        return f"{len(snapshot.open_questions)} open questions: answer each in the tab questions"
    if snapshot.open is not None:
        return "a: decide" if snapshot.open.kind is QuestionKind.APPROVAL else "a: answer"
    return "l: show log" if why.reason == "running" else why.next_step_in(show)


def _summary(job: Job) -> str:
    """Return the summary of the result, or its first lines."""
    if summary := (job.result or {}).get("summary"):
        return str(summary)
    lines = [
        line
        for part in result_parts(job, has_keys=True)
        for line in part.text.splitlines()
        if line.strip()
    ]
    shown = [" ".join(line.split()) for line in lines[:RESULT_LINES]]
    text = truncate(" · ".join(shown), RESULT_LENGTH)
    is_cut = len(lines) > RESULT_LINES or text.endswith("…")
    return f"{text} (all of it in the tab artifacts)" if is_cut else text or "no result"


def _separated(cells: Iterator[Cell]) -> list[Cell]:
    """Precede each cell with a separator."""
    return [part for cell in cells for part in (Cell(" · ", "dim"), cell)]
