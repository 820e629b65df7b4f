"""Events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, Entity, Listing
from draftsman.ids import actor_name, job_name
from draftsman.jobs.details.sections.events import detail_text
from draftsman.jobs.job import Status
from draftsman.text import humanize

if TYPE_CHECKING:
    from draftsman.events.event import Event


def _status(event: Event) -> Cell:
    return cells.job_status(Status(event.to_status)) if event.to_status else Cell("")


JOB_EVENTS: Final[Entity[Event]] = Entity(
    empty="no events yet",
    json_class="draftsman.events.event:Event",
    listing=Listing(
        "events",
        "Events of all jobs, newest first.",
        read=lambda rt, limit: rt.read_model.latest_events(None, limit),
        key=lambda row: str(row.id),
        opens=lambda row: job_name(row.job),
    ),
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
