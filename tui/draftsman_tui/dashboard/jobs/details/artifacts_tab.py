"""Files tab: artifacts and the result."""

from __future__ import annotations

from datetime import datetime

from draftsman.jobs.details.sections.runs import is_empty_patch
from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab


def artifacts(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each file, and then the result."""
    items = section_items(snapshot, width, now, "artifacts", "result")
    yet = "" if snapshot.over else " yet"
    return items or [note(f"{snapshot.job.name} has no files{yet}", width)]


declare_tab(
    JobTab(
        "artifacts",
        "Files and result of a job.",
        artifacts,
        number_key="0",
        short="files",
        selectable=True,
        count=lambda snapshot: (
            bool(snapshot.job.result)
            + sum(not is_empty_patch(file) for file in snapshot.details.artifacts)
        ),
        shows_count=True,
    )
)
