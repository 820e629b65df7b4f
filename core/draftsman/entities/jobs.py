"""Jobs in lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, ListedEntity, Listing
from draftsman.entities.queues import hold_text
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.amounts import format_money
from draftsman.formats.invisible import one_line
from draftsman.formats.json_data import as_data
from draftsman.ids import job_name
from draftsman.jobs.job import WAITING, Status
from draftsman.text import first_line, humanize

if TYPE_CHECKING:
    from draftsman.jobs.job_summary import JobSummary
    from draftsman.queues.queue_models import QueuedJob
    from draftsman.runtime import Runtime

SOON: Final = timedelta(hours=1)
"""Time to the expiry of a question from which its job says so."""
RUNNING_SIGN: Final = "▸"
"""Sign of a running job in a list that is not drawn again."""


def changes_text(row: JobSummary) -> str:
    """Return the changed lines of the newest patch: `+55 -3`; "" if there are none."""
    figures = row.figures
    if figures is None or not (figures.added or figures.removed):
        return ""
    return f"+{figures.added or 0} -{figures.removed or 0}"


def cost_text(row: JobSummary) -> str:
    """Return the cost in dollars; "" for none."""
    dollars = cost(row)
    return format_money(dollars, cents=True) if dollars else ""


def live_text(row: JobSummary, now: datetime, sign: str = RUNNING_SIGN) -> str:
    """Return the sign, the time and the progress of a running job."""
    elapsed = times.span((now - (row.started_at or now)).total_seconds())
    progress = row.figures.progress if row.figures else ""
    return " ".join(filter(None, (sign, elapsed, one_line(progress))))


def asked_text(row: JobSummary) -> str:
    """Return the question or action of a waiting job: `push draftsman/D-3`; "" if unknown."""
    return first_line(row.figures.asks, 80) if row.figures else ""


def decision_text(row: JobSummary, now: datetime) -> str:
    """Return the answer, decision or cancel that can still be undone; "" without one."""
    held = row.decision
    return "" if held is None else f"{held.lead}{times.until(held.applies_at, now)}"


def _expiry_text(row: JobSummary, now: datetime) -> str:
    """Return when the question of a waiting job expires, if that is soon; "" otherwise."""
    until = None if row.figures is None else row.figures.asks_until
    return "" if until is None or until - now > SOON else f"expires {times.until(until, now)}"


def cost(row: JobSummary) -> float:
    """Return the cost in dollars; 0 if it is unknown."""
    return (row.figures.cost_usd or 0.0) if row.figures else 0.0


def changed_lines(row: JobSummary) -> int:
    """Return the number of changed lines."""
    return (row.figures.added or 0) + (row.figures.removed or 0) if row.figures else 0


def _repo_name(row: JobSummary) -> str | None:
    return None if row.request is None else row.request.repo_name


def _agent(row: JobSummary) -> str | None:
    return None if row.request is None else row.request.agent


def next_cell(row: JobSummary, now: datetime) -> Cell:
    """Return what is next for a job, or when; the error of a failed job."""
    if decision := decision_text(row, now):
        return cells.text(" · ".join(filter(None, (decision, asked_text(row)))))
    if row.job_paused:
        return cells.text(hold_text(row), "warns")
    if row.status in WAITING and (expiry := _expiry_text(row, now)):
        return cells.text(": ".join(filter(None, (expiry, asked_text(row)))), "warns")
    match row.status:
        case Status.RUNNING:
            return cells.text(live_text(row, now), "busy")
        case Status.WAITING_FOR_INPUT | Status.WAITING_FOR_APPROVAL if text := asked_text(row):
            return cells.text(text)
        case Status.WAITING_FOR_INPUT:
            return Cell("answer", "asks")
        case Status.WAITING_FOR_APPROVAL:
            return Cell("approve or deny", "asks")
        case Status.QUEUED | Status.RESUMED | Status.SCHEDULED | Status.RETRYING if row.hold:
            return cells.text(hold_text(row), "warns")
        case Status.RETRYING | Status.SCHEDULED:
            reason = row.sleep_reason or row.last_error or ""
            return cells.text(f"{times.due(row.due_in)} {first_line(reason, 60)}")
        case Status.FAILED | Status.DEAD_LETTER if closed := row.closed_text:
            return cells.text(f"{closed}: {first_line(row.last_error or '', 80)}", "dim")
        case Status.FAILED | Status.DEAD_LETTER:
            role = cells.job_status(row.status, row.error_class).role
            return cells.text(first_line(row.last_error or "", 80), role)
        case _:
            return Cell("")


def status_of(row: JobSummary, *, full: bool = False) -> Cell:
    """Format the status of a job, short unless `full`."""
    if row.closed_text:
        return Cell(humanize(row.status), "dim")
    return cells.job_status(row.status, row.error_class, paused=row.shown_as_paused, full=full)


async def _read(rt: Runtime, limit: int) -> Sequence[JobSummary]:
    page = await rt.read_model.page(limit=limit)
    return await rt.read_model.with_figures(page.jobs)


JOBS: Final[ListedEntity[JobSummary]] = ListedEntity(
    empty="no jobs yet",
    hint=(
        "to set draftsman up: draftsman init; to submit a job: draftsman submit --help;"
        " an example, with data of its own: draftsman demo"
    ),
    json_class="draftsman.jobs.job_summary:JobSummary",
    listing=Listing(
        "jobs",
        "Jobs, newest first.",
        read=_read,
        key=lambda row: job_name(row.number),
        opens=lambda row: job_name(row.number),
    ),
    searched=lambda row: f"{row.type} {row.last_error or ''}",
    columns=(
        Column(
            "JOB",
            9,
            help="The job, or its question.",
            cell=lambda row, _: Cell(job_name(row.number), "key"),
            most=9,
            order=lambda row: row.number,
            measure=Measure.NUMBER,
        ),
        shared_columns.status(
            lambda row: status_of(row),
            11,
            most=11,
            order=lambda row: list(Status).index(row.status),
        ),
        shared_columns.text(
            "TITLE",
            help="Title of the job, or its type.",
            of=lambda row: row.title,
            cut=True,
        ),
        shared_columns.text(
            "TYPE", 12, help="Type of its jobs.", of=lambda row: row.type, most=30, on_request=True
        ),
        shared_columns.text(
            "QUEUE",
            10,
            help="Name of the queue.",
            of=lambda row: row.queue,
            most=30,
            on_request=True,
        ),
        shared_columns.repo(_repo_name, most=24, from_width=84, optional=True),
        shared_columns.text(
            "AGENT",
            12,
            help="Its agent.",
            of=_agent,
            most=20,
            from_width=120,
            optional=True,
        ),
        shared_columns.by(lambda row: row.invoker_id, from_width=150),
        shared_columns.number(
            "RUNS", 5, help="Number of its runs.", of=lambda row: row.run_count, from_width=160
        ),
        Column(
            "CHANGES",
            9,
            help="Lines that its work adds and removes.",
            cell=lambda row, _: Cell(changes_text(row), "dim"),
            right=True,
            most=14,
            from_width=120,
            order=changed_lines,
            measure=Measure.NUMBER,
            optional=True,
        ),
        Column(
            "COST",
            6,
            help="Its cost in dollars; models without a price count as 0.",
            cell=lambda row, _: Cell(cost_text(row), "dim"),
            right=True,
            most=9,
            from_width=84,
            order=cost,
            measure=Measure.NUMBER,
            optional=True,
        ),
        shared_columns.age(lambda row: row.created_at),
        Column(
            "FINISHED",
            8,
            help="Time since it ended.",
            cell=lambda row, now: cells.age(row.finished_at, now),
            right=True,
            from_width=200,
            order=lambda row: row.finished_at,
            measure=Measure.TIME,
            optional=True,
        ),
        Column(
            "NEXT",
            20,
            help="What is next, or when; the error of a failed job.",
            cell=next_cell,
            most=60,
            cut=True,
        ),
    ),
)
DEAD_LETTERS: Final = Entity(
    columns=JOBS.columns,
    empty="no dead letters",
    data=JOBS.data,
    json_class=JOBS.json_class,
    json_more=JOBS.json_more,
    searched=JOBS.searched,
)


# Queued jobs in the order of the claim.


@dataclass(frozen=True, slots=True)
class QueuedRow:
    """A queued job, and what it waits for."""

    job: QueuedJob
    condition: str


QUEUED_JOBS: Final[Entity[QueuedRow]] = Entity(
    empty="no job can be claimed",
    data=lambda row: as_data(row.job),
    json_class="draftsman.queues.queue_models:QueuedJob",
    columns=(
        Column(
            "JOB",
            help="The job, or its question.",
            cell=lambda row, _: Cell(job_name(row.job.number), "key"),
        ),
        Column("QUEUE", help="Name of the queue.", cell=lambda row, _: cells.text(row.job.queue)),
        Column(
            "PRIORITY",
            help="Its priority: higher numbers run first.",
            cell=lambda row, _: Cell(str(row.job.priority)),
            right=True,
        ),
        Column(
            "TITLE",
            help="Title of the job, or its type.",
            cell=lambda row, _: cells.text(row.job.title),
            cut=True,
        ),
        shared_columns.repo(lambda row: row.job.repo_name),
        shared_columns.age(lambda row: row.job.created_at),
        Column(
            "NEXT",
            help="What is next, or when; the error of a failed job.",
            cell=lambda row, _: cells.text(row.condition),
            cut=True,
        ),
    ),
)
