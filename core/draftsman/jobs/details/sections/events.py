"""The events of a job, in the format of `draftsman events`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from draftsman.events.archive import Archive, JobArchive
from draftsman.events.event import Event
from draftsman.formats.amounts import counted
from draftsman.formats.truncation import truncate
from draftsman.ids import actor_name, job_name
from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections.section import (
    Entry,
    Line,
    Reader,
    faint,
    flat,
    name,
    status_span,
)
from draftsman.jobs.job import Status
from draftsman.jobs.retries import ErrorClass
from draftsman.jobs.status_display import Meaning

MAX_VALUE_LENGTH: Final = 100
"""Maximum number of characters of a payload value on a line; --json has all of it."""


def events(details: JobDetails, reader: Reader) -> Iterator[Entry]:
    """Yield the months that were archived, then the newest events, oldest first."""
    job = details.job
    for months in missing_months(details.archives):
        yield Entry("", ((faint(f"{months}; see: draftsman archives --help"),),))
    if details.has_earlier_events:
        omitted = f"… older events omitted; all events: draftsman events {job.name}"
        yield Entry("", ((faint(omitted),),))
    for event in details.events:
        yield Entry(f"{job.name}#{event.id}", (event_line(event, reader),))


def event_line(event: Event, reader: Reader, *, names_job: bool = False) -> Line:
    """Return an event as a line, with the name of its job if `names_job`."""
    moved: Line = ()
    if event.to_status:
        denied = event.payload.get("error_class") == ErrorClass.DENIED
        moved = (" → ", status_span(Status(event.to_status), denied=denied))
    detail = detail_text(event)
    return (
        reader.clock(event.created_at, Meaning.NEUTRAL),
        name(f"  {job_name(event.job)}" if names_job else ""),
        f"  {event.kind}",
        *moved,
        faint(f"  {actor_name(event.actor)}"),
        f"  {detail}" if detail else "",
    )


def detail_text(event: Event) -> str:
    """Return the details of an event: `key=name  kind=input`."""
    # a person reads the label of a choice instead of its value, and a text instead of its spans
    hidden = {"spans", "value" if "label" in event.payload else ""}
    values = {key: value for key, value in event.payload.items() if key not in hidden}
    return "  ".join(f"{key}={_value(value)}" for key, value in values.items())


def missing_months(parts: Sequence[Archive | JobArchive]) -> Iterator[str]:
    """Yield a line for each archived month: the number of events and the archive's location."""
    for part in parts:
        count = counted(part.events, "event")
        yield f"{count} of {part.month:%Y-%m} archived to {part.host}:{part.path}"


def _value(value: object) -> str:
    return truncate(flat(_plain(value)), MAX_VALUE_LENGTH)


def _plain(value: object) -> str:
    match value:
        case str():
            return value
        case list() if texts := [item["text"] for item in value if _is_question(item)]:
            return " · ".join(texts)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _is_question(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("text"), str)
