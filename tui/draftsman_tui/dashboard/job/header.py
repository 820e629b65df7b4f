"""The head of a job: what it is, how far it is, what it waits for. Always in view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from draftsman.domain.ids import actor_name
from draftsman.domain.job import TERMINAL, Job, Status
from draftsman.domain.messages.plain_text import change_summary
from draftsman.domain.question import QuestionKind
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.domain.wait_reason import WaitReason, expiring_question, expiry_text
from draftsman_tui.common import times
from draftsman_tui.common.job_text import status_text
from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.cells import DENIED, ROLES
from draftsman_tui.dashboard.job.row_layout import Row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.resource import Cell

HEIGHT: Final = 3
"""Rows."""


def head(seen: JobSnapshot, now: datetime) -> list[Row]:
    """Return three rows."""
    job = seen.job
    role = DENIED if _denied(job) else ROLES.get(job.status, "")
    return [
        (
            Cell(status_text(job.status).plain, role),
            *_joined(_origin(job, now)),
        ),
        tuple(_joined(_progress(seen, now))[1:]),
        _what_next(seen, now),
    ]


def _origin(job: Job, now: datetime) -> Iterator[Cell]:
    if job.repo:
        yield Cell(one_line(job.repo), "head")
    yield Cell(one_line(f"agent {job.agent}" if job.agent else job.type))
    yield Cell(str(job.mode))
    who = job.invoker_display_name or job.invoker_id
    yield Cell(one_line(f"by {who} ({job.source}), {times.ago(job.created_at, now)}"))


def _progress(seen: JobSnapshot, now: datetime) -> Iterator[Cell]:
    job = seen.job
    if until := _until(seen, now):
        yield until
    if job.finished_at:
        yield Cell(f"ended {times.ago(job.finished_at, now)}")
    before = [one.name for one in seen.chain if one.number == job.retry_of]
    after = [one.name for one in seen.chain if one.retry_of == job.number]
    yield from (Cell(f"retry of {name}", "calm") for name in before)
    yield from (Cell(f"retried as {name}", "calm") for name in after)
    yield Cell(f"tries {job.run_count}" if job.run_count else "no run yet")
    if job.attempts:
        yield Cell(f"attempts {job.attempts} of {job.max_attempts}")
    yield Cell(f"retries {job.retry_count} of {job.max_retries}")
    if made := change_summary(job.result or {}):
        yield Cell(one_line(made), "good")
    if url := (job.result or {}).get("pr_url"):
        yield Cell(one_line(str(url)), "key")


def _until(seen: JobSnapshot, now: datetime) -> Cell | None:
    """Return the countdown: to the next try, to its time, to the end of a question."""
    if seen.over:
        return None
    if seen.open is not None:
        until = seen.open.expires_at
        return Cell(f"expires {times.left(until, now)}" if until else "never expires", "asks")
    if seen.why is None or seen.why.due_in is None:
        return None
    left = seen.why.due_in - (now - seen.at).total_seconds()
    verb = "tried again" if seen.job.status is Status.RETRYING else "begins"
    return Cell(f"{verb} {times.due(left)}", "warns")


def _what_next(seen: JobSnapshot, now: datetime) -> Row:
    job = seen.job
    if job.cancel_requested_by and job.status not in TERMINAL:
        because = f": {job.cancel_reason}" if job.cancel_reason else ""
        return (Cell(one_line(f"told to stop by {job.cancel_requested_by}{because}"), "bad"),)
    if seen.why is not None:
        works = job.status is Status.RUNNING
        lead = Cell("now  " if works else "waits  ", "asks" if seen.open else "head")
        then = Cell(one_line(f"; {_then(seen, seen.why)}"), "dim")
        return (lead, Cell(one_line(seen.why.text)), then)
    if job.status is Status.COMPLETED:
        return (Cell("made  ", "good"), Cell(one_line(_summary(job))))
    if job.status is Status.CANCELED:
        because = f": {job.cancel_reason}" if job.cancel_reason else ""
        by = actor_name(job.cancel_requested_by or "")
        return (Cell(one_line(f"canceled by {by}{because}")),)
    if _denied(job):
        return (Cell("decision  ", DENIED), Cell(one_line(str(job.last_error))))
    if job.status is Status.EXPIRED and (question := expiring_question(seen.questions)) is not None:
        return (Cell("expired  ", "bad"), Cell(one_line(expiry_text(question))))
    kind = f" ({job.error_class})" if job.error_class else ""
    return (Cell("error  ", "bad"), Cell(one_line(f"{job.last_error or 'none told'}{kind}")))


def _denied(job: Job) -> bool:
    return job.error_class == ErrorClass.DENIED


def _then(seen: JobSnapshot, why: WaitReason) -> str:
    """Return what to do: with the keys of here, where core says what to type."""
    if seen.open is not None:
        return "a: decide" if seen.open.kind is QuestionKind.APPROVAL else "a: answer"
    return "l: its log" if why.reason == "running" else why.then


def _summary(job: Job) -> str:
    result = job.result or {}
    return str(result.get("summary") or ("a result: see its files" if result else "no result"))


def _joined(cells: Iterator[Cell]) -> list[Cell]:
    """Return the cells, each behind a dot."""
    return [one for cell in cells for one in (Cell(" · ", "dim"), cell)]
