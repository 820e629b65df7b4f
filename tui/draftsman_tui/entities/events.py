"""Events, missing logs and archived months."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.truncation import truncate
from draftsman.ids import actor_name, job_name
from draftsman.jobs.job import Status
from draftsman.text import humanize
from draftsman_tui.entities import cells, shared_columns
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.entity import Column, Entity
from draftsman_tui.entities.jobs import status_text
from draftsman_tui.terminal.output import line, one_line, styled

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from draftsman.events.event import Event


MAX_VALUE_LENGTH = 100
"""Maximum number of characters of a payload value on a line; --json has all of it."""


def no_log(number: int, retention: int | None) -> str:
    """Explain that a job has no log; `retention` is the months that logs are kept."""
    expired = f", or they were deleted after {retention} months" if retention else ""
    return f"{job_name(number)} has no logs{expired}"


def event_text(event: Event, *, name: bool = False, now: datetime | None = None) -> Text:
    """Render an event as a line; `name` includes the name of its job."""
    moved: list[Text | str] = []
    if event.to_status:
        error_class = event.payload.get("error_class")
        moved = [" → ", status_text(Status(event.to_status), error_class)]
    detail = detail_text(event)
    return line(
        styled(times.clock(event.created_at, now), "dim"),
        styled(f"  {job_name(event.job)}" if name else "", "bold"),
        f"  {event.kind}",
        *moved,
        styled(f"  {actor_name(event.actor)}", "dim"),
        f"  {detail}" if detail else "",
    )


def detail_text(event: Event) -> str:
    """Return the details of an event: `key=name  kind=input`."""
    # a person reads the label of a choice instead of its value
    hidden = "value" if "label" in event.payload else ""
    details = {key: value for key, value in event.payload.items() if key != hidden}
    return "  ".join(f"{key}={_value(value)}" for key, value in details.items())


def _value(value: object) -> str:
    return truncate(one_line(_plain(value)), MAX_VALUE_LENGTH)


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


def missing_months(parts: Sequence[Any]) -> Iterator[str]:
    """Yield a line for each archived month: the number of events and the archive's location."""
    for part in parts:
        count = counted(part.events, "event")
        yield f"{count} of {part.month:%Y-%m} archived to {part.host}:{part.path}"


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
