"""Timeline tab: events of a job, in the format of `draftsman events`."""

from __future__ import annotations

from datetime import datetime

from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab


def timeline(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each event, oldest first."""
    items = section_items(snapshot, width, now, "events", titled=False, wraps=False)
    return items or [note("No events yet", width)]


declare_tab(
    JobTab(
        "timeline",
        "Events of a job.",
        timeline,
        number_key="1",
        short="time",
        selectable=True,
        follows=True,
        has_chart=True,
    )
)
