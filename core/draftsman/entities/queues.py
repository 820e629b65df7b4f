"""Queues, their pauses and reservations, and the conditions that jobs wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import START_WORKER, Column, Entity, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.ids import account_name, job_name
from draftsman.queues.usage_limits import bucket_title

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.jobs.job_summary import JobSummary
    from draftsman.queues.queue_models import QueueChange, QueueSummary


def blocks_text(summary: QueueSummary, now: datetime | None = None) -> str:
    """Return who reserved a queue until when; and since when, by whom and why it is paused."""
    blocks = []
    if reserved := summary.reservation:
        by = account_name(reserved.actor)
        until = times.clock_with_zone(reserved.expires_at, now)
        blocks.append(f"reserved by {by} for {job_name(reserved.job)} until {until}")
    blocks += [
        (f"{pause.type}: " if pause.type else "")
        + f"{times.ago(pause.paused_at, now)} by {account_name(pause.paused_by)}:"
        + f" {one_line(pause.reason)}"
        for pause in summary.pauses
    ]
    blocks += [
        f"{item.jobs:,} {'waits' if item.jobs == 1 else 'wait'}"
        f" for a worker with the type {one_line(item.type)}"
        for item in summary.unhandled
    ]
    blocks += [
        f"{count:,} {'waits' if count == 1 else 'wait'} for {what}"
        for count, what in (
            (summary.limited, "limits"),
            (summary.keyed, "a concurrency key"),
            (summary.dependent, "parents"),
        )
        if count
    ]
    return "; ".join(blocks)


LACKS_WORKER: Final = ("no_worker", "unknown_type")
"""Holds of jobs that could be claimed, if there were a worker for them."""


def hold_text(job: JobSummary) -> str:
    """Return the condition that a held job waits for, or the person and reason of its pause."""
    if job.job_paused:
        return f"paused by {account_name(job.paused_by or '')}: {one_line(job.pause_reason or '')}"
    if job.hold is None or job.hold in LACKS_WORKER:
        return worker_text(job.hold, job.queue, job.type)
    if job.parents:
        from draftsman.workflows.dependencies import parents_text

        return parents_text(job.parents)
    return condition_text(job.hold or "", job.held_by)


def worker_text(missing: str | None, queue: str, type: str) -> str:
    """Return the worker or the slot that a job waits for if it can be claimed."""
    if missing == "unknown_type":
        return f"a worker with the type {type}"
    return "a free slot" if missing is None else f"a worker for queue {queue}"


def condition_text(hold: str, held_by: str | None) -> str:
    """Return the condition of a hold."""
    if hold == "limit" and held_by is not None and ":" in held_by:
        return f"a place: {bucket_title(held_by)}"
    names = {
        "key": "its concurrency key",
        "parents": "its parents",
        "children": "the jobs that it spawned",
        "reserved": "its reserved queue",
        "trial": "its turn: jobs that were lost together run one at a time",
    }
    return names.get(hold, "its paused queue")


def status_of(queue: QueueSummary) -> str:
    """Return `open`, `paused` or `reserved`."""
    return "paused" if queue.pauses else "reserved" if queue.reservation else "open"


def _queued(queue: QueueSummary) -> Cell:
    plus = "+" if queue.capped and not queue.pause else ""
    return Cell(f"{queue.queued:,}{plus}")


def _held(queue: QueueSummary) -> Cell:
    if not queue.held:
        return Cell("0")
    return Cell(f"{queue.held:,}{'+' if queue.capped else ''}", "warns")


def _oldest(queue: QueueSummary) -> Cell:
    return Cell("" if queue.oldest_wait is None else times.span(queue.oldest_wait), "dim")


QUEUES: Final[ListedEntity[QueueSummary]] = ListedEntity(
    empty="no queue has jobs or a worker",
    hint=START_WORKER,
    json_class="draftsman.queues.queue_models:QueueSummary",
    listing=Listing(
        "queues",
        "Queues, what waits in them, and which are paused or reserved.",
        read=lambda rt, _: rt.queues.all(),
        key=lambda row: row.name,
        jobs=lambda row: {"queue": row.name},
    ),
    columns=(
        shared_columns.text(
            "QUEUE", 16, help="Name of the queue.", of=lambda row: row.name, role="key", most=30
        ),
        shared_columns.status(
            lambda row: Cell(status_of(row), "calm" if status_of(row) == "open" else "warns"),
            8,
            order=lambda row: status_of(row) == "open",
        ),
        Column(
            "QUEUED",
            9,
            help="Jobs that can be claimed.",
            cell=lambda row, _: _queued(row),
            right=True,
            order=lambda row: row.queued,
            measure=Measure.NUMBER,
        ),
        Column(
            "HELD",
            9,
            help="Jobs that cannot be claimed, such as those of a paused queue or type.",
            cell=lambda row, _: _held(row),
            right=True,
            order=lambda row: row.held,
            measure=Measure.NUMBER,
        ),
        shared_columns.number("RUNNING", 7, help="Jobs that run.", of=lambda row: row.running),
        Column(
            "OLDEST",
            7,
            help="Time for which the first job has waited.",
            cell=lambda row, _: _oldest(row),
            right=True,
            order=lambda row: row.oldest_wait or 0.0,
            measure=Measure.TIME,
            largest_first=True,
        ),
        Column(
            "BLOCKED",
            help="Who paused or reserved the queue, and what its jobs wait for.",
            cell=lambda row, now: cells.text(blocks_text(row, now)),
            cut=True,
            optional=True,
        ),
    ),
)
QUEUE_CHANGES: Final[Entity[QueueChange]] = Entity(
    empty="no queue was paused or reserved yet",
    json_class="draftsman.queues.queue_models:QueueChange",
    columns=(
        shared_columns.when(lambda row: row.created_at),
        shared_columns.text("QUEUE", help="Name of the queue.", of=lambda row: row.queue),
        shared_columns.text("TYPE", help="Type of its jobs.", of=lambda row: row.type),
        shared_columns.text("ACTION", help="What was changed.", of=lambda row: row.action),
        shared_columns.by(lambda row: account_name(row.actor)),
        shared_columns.text("REASON", help="Its reason.", of=lambda row: row.reason, cut=True),
    ),
)
"""Pauses, reservations and their ends."""
