"""Lines of events, and missing logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.ids import job_name
from draftsman.jobs.details.sections.events import event_line
from draftsman_tui.common.sections import line_text, reader_at

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
