"""The events of a job, in the format of `draftsman events`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from draftsman.events.archive import Archive, JobArchive
from draftsman.events.event import Event
from draftsman.formats.amounts import counted
from draftsman.ids import actor_name, job_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.event_sentences import event_sentence
from draftsman.jobs.details.sections.section import (
    Entry,
    Line,
    LineSpan,
    Reader,
    faint,
    name,
)
from draftsman.jobs.status_display import Meaning
from draftsman.value_format import fields


def events(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the months that were archived, then the newest events, oldest first."""
    job = details.job
    for months in missing_months(details.archives):
        command = "; see: draftsman archives --help" if reader.types_commands else ""
        yield Entry("", ((faint(months + command),),))
    if details.has_earlier_events:
        command = f"draftsman events {job.name}"
        omitted = faint(f"… older events omitted; all events: {command}")
        if reader.events_url:
            omitted = LineSpan("Older events", url=reader.events_url)
        yield Entry("", ((omitted,),))
    for event in details.events:
        yield Entry(f"{job.name}#{event.id}", (event_line(event, reader),), event)


def event_line(event: Event, reader: Reader, *, names_job: bool = False) -> Line:
    """Return an event as a line: its time and sentence, with the name of its job if `names_job`."""
    return (
        reader.clock(event.created_at, Meaning.NEUTRAL),
        name(f"  {job_name(event.job)}" if names_job else ""),
        "  ",
        *event_sentence(event, reader),
    )


def detail_lines(event: Event) -> Sequence[str]:
    """Return the kind of an event, who caused it, and its payload, below each other."""
    return fields(detail_values(event), f"draftsman events {job_name(event.job)} --json")


def detail_values(event: Event) -> dict[str, object]:
    """Return the kind of an event, who caused it, and its payload."""
    return {"kind": event.kind, "actor": actor_name(event.actor)} | event.payload


def missing_months(parts: Sequence[Archive | JobArchive]) -> Iterator[str]:
    """Yield a line for each archived month: the number of events and the archive's location."""
    for part in parts:
        count = counted(part.events, "event")
        yield f"{count} of {part.month:%Y-%m} archived to {part.host}:{part.path}"
