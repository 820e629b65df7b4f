"""Events of all jobs, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.events.event import Event
from draftsman.ids import actor_name, job_name
from draftsman.jobs.event_kinds import EVENTS
from draftsman.jobs.job import Status
from draftsman.text import humanize
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import (
    MAX_ROWS,
    Query,
    Resource,
    Rows,
    page,
    table_view,
)
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column
from draftsman_tui.entities.events import detail_text

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class EventsResource(Resource[Event]):
    """Event history."""

    name = "events"
    number_key = "7"
    short_name = "event"
    help = "Events of all jobs, live."
    empty = "No events yet."
    statuses = tuple(map(str, Status))
    kinds = tuple(sorted(EVENTS))
    fields = ("status", "by", "job", "age")
    has_jobs = True
    follows = True
    columns = (
        Column[Event]("AT", 11, most=11, order=lambda event: event.created_at),
        Column[Event]("JOB", 9, most=9, order=lambda event: event.job),
        Column[Event]("EVENT", 16, most=30, order=lambda event: event.kind),
        Column[Event]("TO", 11, most=20, order=lambda event: event.to_status or ""),
        Column[Event]("BY", 18, most=30, from_width=100, order=lambda event: event.actor),
        Column[Event]("DETAIL", 0),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Event]:
        if query.jobs is not None:
            newest = [
                event
                for job in query.jobs
                for event in await rt.read_model.latest_job_events(job, limit=MAX_ROWS)
            ]
            return Rows(sorted(newest, key=lambda event: event.cursor, reverse=True)[:MAX_ROWS])
        events = await rt.read_model.latest_events(query.before, query.limit)
        return page(events, query.limit, lambda event: event.cursor)

    def key(self, row: Event) -> str:
        return f"{job_name(row.job)}#{row.id}"

    def job(self, row: Event) -> int:
        return row.job

    def item(self, row: Event) -> tuple[str, str | None]:
        return "timeline", self.key(row)

    def cells(self, row: Event, now: datetime) -> Sequence[Cell]:
        return (
            cells.clock(row.created_at, now),
            Cell(job_name(row.job), "key"),
            cells.text(humanize(row.kind)),
            cells.job_status(Status(row.to_status)) if row.to_status else Cell(""),
            cells.text(actor_name(row.actor)),
            cells.text(detail_text(row), "dim"),
        )

    def filter_fields(self, row: Event) -> FilterFields:
        text = f"{job_name(row.job)} {row.kind} {row.actor} {detail_text(row)}"
        return FilterFields(
            text,
            row.to_status or "",
            by=actor_name(row.actor),
            at=row.created_at,
            second_status=row.kind,
        )
