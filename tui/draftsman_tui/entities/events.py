"""Events and missing logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.ids import actor_name, job_name
from draftsman.jobs.details.sections.events import detail_text, event_line
from draftsman.jobs.job import Status
from draftsman.text import humanize
from draftsman_tui.entities import cells, shared_columns
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column, Entity
from draftsman_tui.entities.sections import line_text, reader_at

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from draftsman.events.event import Event


def no_log(number: int, retention: int | None) -> str:
    """Explain that a job has no log; `retention` is the months that logs are kept."""
    expired = f", or they were deleted after {retention} months" if retention else ""
    return f"{job_name(number)} has no logs{expired}"


def event_text(event: Event, *, name: bool = False, now: datetime | None = None) -> Text:
    """Render an event as a line; `name` includes the name of its job."""
    return line_text(*event_line(event, reader_at(now), names_job=name))


def _status(event: Event) -> Cell:
    return cells.job_status(Status(event.to_status)) if event.to_status else Cell("")


JOB_EVENTS: Final[Entity[Event]] = Entity(
    empty="no events yet",
    columns=(
        Column(
            "AT",
            11,
            help="When it happened.",
            cell=lambda row, now: cells.clock(row.created_at, now),
            most=11,
            order=lambda row: row.created_at,
        ),
        Column(
            "JOB",
            9,
            help="The job, or its question.",
            cell=lambda row, _: Cell(job_name(row.job), "key"),
            most=9,
            order=lambda row: row.job,
        ),
        Column(
            "EVENT",
            16,
            help="What happened.",
            cell=lambda row, _: cells.text(humanize(row.kind)),
            most=30,
            order=lambda row: row.kind,
        ),
        Column(
            "TO",
            11,
            help="New status of the job.",
            cell=lambda row, _: _status(row),
            most=20,
            order=lambda row: row.to_status or "",
        ),
        shared_columns.by(lambda row: actor_name(row.actor), from_width=100),
        Column(
            "DETAIL",
            help="Its details.",
            cell=lambda row, _: cells.text(detail_text(row), "dim"),
            cut=True,
        ),
    ),
)
