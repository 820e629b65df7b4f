"""Timeline tab: events of a job, in the format of `draftsman events`."""

from __future__ import annotations

from datetime import datetime

from draftsman_tui.dashboard.jobs.details.row_layout import Item, note, row_of
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.entities.events import event_text, missing_months


def timeline(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each event, oldest first."""
    name = snapshot.job.name
    notes = [
        f"{gap}; see: draftsman archives --help"
        for gap in missing_months(snapshot.details.archives)
    ]
    if snapshot.earlier:
        notes.append(f"… older events omitted; all events: draftsman events {name}")
    events = [
        Item(f"{name}#{event.id}", (row_of(event_text(event, now=now)),))
        for event in snapshot.events
    ]
    if not events and not notes:
        notes.append("No events yet")
    return [*(note(text, width) for text in notes), *events]


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
