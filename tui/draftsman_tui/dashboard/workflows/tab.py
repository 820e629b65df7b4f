"""Related tab: retries, parents, children and the group of a job.

The key of an item ends with the name that Enter opens.
"""

from __future__ import annotations

from datetime import datetime

from draftsman.jobs.details.sections.related import GROUP
from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab


def related(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each retry, for the group, and for each parent and child."""
    items = section_items(
        snapshot,
        width,
        now,
        "retries",
        "group",
        "parents",
        "children",
        hint=lambda name: "enter: its jobs" if name.startswith(GROUP) else "",
    )
    nothing = f"{snapshot.job.name}: no retries, parents, children or group"
    return items or [note(nothing, width)]


declare_tab(
    JobTab(
        "related",
        "Retries, parents and children of a job, and its group.",
        related,
        number_key="9",
        selectable=True,
        has_ids=True,
    )
)
