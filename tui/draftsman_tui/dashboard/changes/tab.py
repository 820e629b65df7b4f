"""Diff tab: a note for a job without a diff; the diff itself has its own viewer."""

from __future__ import annotations

from datetime import datetime

from draftsman.formats.amounts import format_size
from draftsman.jobs.details.sections.runs import is_empty_patch
from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab


def diff(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return a note that there is no diff."""
    if snapshot.patch is not None and snapshot.patch.text:
        return []
    so_far = "" if snapshot.over else " so far"
    return [note(f"{snapshot.job.name} has no changes{so_far}", width)]


def truncation(snapshot: JobSnapshot) -> str:
    """Return the note that the diff is truncated; "" for a whole diff."""
    if snapshot.patch is None or not snapshot.patch.cut:
        return ""
    size = format_size(snapshot.patch.size)
    return f"truncated; full diff ({size}): draftsman diff {snapshot.job.name}"


declare_tab(
    JobTab(
        "diff",
        "Diff of a job.",
        diff,
        number_key="4",
        of_request=True,
        count=lambda snapshot: sum(
            file.kind == "patch" and not is_empty_patch(file) for file in snapshot.details.artifacts
        ),
    )
)
