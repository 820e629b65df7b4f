"""Lines of events, and missing logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.ids import job_name
from draftsman.jobs.details.sections.events import detail_lines, event_line
from draftsman_tui.common.sections import MORE_INDENT, line_text
from draftsman_tui.terminal.output import styled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from draftsman.events.event import Event
    from draftsman.jobs.details.sections.section import Reader


def no_log(number: int, retention: int | None) -> str:
    """Explain that a job has no log; `retention` is the months that logs are kept."""
    expired = f", or they were deleted after {retention} months" if retention else ""
    return f"{job_name(number)} has no logs{expired}"


def event_text(event: Event, reader: Reader, *, name: bool = False) -> Text:
    """Render an event as a line; `name` includes the name of its job."""
    return line_text(*event_line(event, reader, names_job=name))


def event_details(event: Event) -> Iterator[Text]:
    """Render the kind of an event, who caused it, and its payload, below its line."""
    yield from (styled(f"{MORE_INDENT}{line}", "dim") for line in detail_lines(event))
