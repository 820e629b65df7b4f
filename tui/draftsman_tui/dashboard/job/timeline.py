"""The timeline: what happened, through whom and from which channel, as `draftsman events` says."""

from __future__ import annotations

from datetime import datetime

from draftsman_tui.common.event_text import event_text, missing_months
from draftsman_tui.dashboard.job.row_layout import Item, note, row_of
from draftsman_tui.dashboard.job.snapshot import JobSnapshot


def timeline(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each event, on one row; the oldest first."""
    name = seen.job.name
    notes = [f"{one}; see: draftsman archives --help" for one in missing_months(seen.archived)]
    if seen.earlier:
        notes.append(f"… what was before is not shown; all of it: draftsman events {name}")
    events = [
        Item(f"{name}#{event.id}", (row_of(event_text(event, now=now)),)) for event in seen.events
    ]
    if not events and not notes:
        notes.append("nothing happened yet")
    return [*(note(one, width) for one in notes), *events]
