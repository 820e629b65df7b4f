"""Events of all jobs, newest first."""

from __future__ import annotations

from draftsman.entities.events import JOB_EVENTS, named
from draftsman.events.event import Event
from draftsman.ids import actor_name, job_name
from draftsman.jobs.details.sections.event_sentences import event_sentence
from draftsman.jobs.details.sections.section import Reader, plain
from draftsman.jobs.event_kinds import EVENTS
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import MAX_ROWS, ListedResource, Query, Rows, page


class EventsResource(ListedResource[Event]):
    """Event history."""

    number_key = "7"
    short_name = "event"
    help = "Events of all jobs, live."
    entity = JOB_EVENTS
    statuses = tuple(map(str, Status))
    kinds = tuple(sorted(EVENTS))
    fields = ("status", "by", "job", "age")
    has_jobs = True

    async def read(self, rt: Runtime, query: Query) -> Rows[Event]:
        if query.jobs is not None:
            newest = [
                named(event, rt.policy)
                for job in query.jobs
                for event in await rt.read_model.latest_job_events(job, limit=MAX_ROWS)
            ]
            return Rows(sorted(newest, key=lambda event: event.cursor, reverse=True)[:MAX_ROWS])
        events = await rt.read_model.latest_events(query.before, query.limit)
        named_events = [named(event, rt.policy) for event in events]
        return page(named_events, query.limit, lambda event: event.cursor)

    def key(self, row: Event) -> str:
        return f"{job_name(row.job)}#{row.id}"

    def item(self, row: Event) -> tuple[str, str | None]:
        return "timeline", self.key(row)

    def filter_fields(self, row: Event) -> FilterFields:
        sentence = plain(event_sentence(row, Reader(row.created_at)))
        text = f"{job_name(row.job)} {row.kind} {row.actor} {sentence}"
        return FilterFields(
            text,
            row.to_status or "",
            by=actor_name(row.actor),
            at=row.created_at,
            second_status=row.kind,
        )
