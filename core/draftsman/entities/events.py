"""Events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from draftsman.entities import cells
from draftsman.entities.cells import Cell
from draftsman.entities.entity import Column, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.ids import job_name
from draftsman.jobs.details.sections.event_sentences import event_sentence
from draftsman.jobs.details.sections.section import Reader, plain
from draftsman.jobs.job import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.events.event import Event
    from draftsman.people.policy import Policy
    from draftsman.runtime import Runtime


def _status(event: Event) -> Cell:
    return cells.job_status(Status(event.to_status)) if event.to_status else Cell("")


def named(event: Event, policy: Policy) -> Event:
    """Return the event with the person of its account."""
    return replace(event, actor=policy.requester(event.actor))


async def _read(rt: Runtime, limit: int) -> Sequence[Event]:
    return [named(event, rt.policy) for event in await rt.read_model.latest_events(None, limit)]


JOB_EVENTS: Final[ListedEntity[Event]] = ListedEntity(
    empty="no events yet",
    json_class="draftsman.events.event:Event",
    listing=Listing(
        "events",
        "Events of all jobs, newest first.",
        read=_read,
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
            measure=Measure.TIME,
        ),
        Column(
            "JOB",
            9,
            help="The job, or its question.",
            cell=lambda row, _: Cell(job_name(row.job), "key"),
            most=9,
            order=lambda row: row.job,
            measure=Measure.NUMBER,
        ),
        Column(
            "TO",
            11,
            help="New status of the job.",
            cell=lambda row, _: _status(row),
            most=20,
            order=lambda row: row.to_status or "",
        ),
        Column(
            "EVENT",
            help="What happened.",
            cell=lambda row, now: cells.text(plain(event_sentence(row, Reader(now)))),
            order=lambda row: row.kind,
            cut=True,
        ),
    ),
)
