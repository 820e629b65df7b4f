"""Files tab: artifacts and the result."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from draftsman.formats import times
from draftsman_tui.dashboard.jobs.details.row_layout import (
    Item,
    Row,
    note,
    row_of,
    section,
    wrap_row,
)
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.dashboard.jobs.details.ticket_tab import json_rows
from draftsman_tui.entities.artifacts import file_text, is_empty_patch
from draftsman_tui.terminal.output import line, styled


def artifacts(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each file, and then the result."""
    name = snapshot.job.name
    result = section("result", "Result", list(json_rows(snapshot.job.result, snapshot.job, width)))
    if not snapshot.details.artifacts and not result:
        return [note(f"{name} has no files" + ("" if snapshot.over else " yet"), width)]
    files = [
        Item(f"{file.run}/{file.name}", tuple(_file_rows(file, snapshot, width, now)))
        for file in snapshot.details.artifacts
    ]
    return [*(files or [note(f"{name} has no files", width)]), *result]


def _file_rows(file: Any, snapshot: JobSnapshot, width: int, now: datetime) -> list[Row]:
    created = styled(f"  {times.ago(file.created_at, now)}", "dim")
    return wrap_row(row_of(line(file_text(file, over=snapshot.over), created)), width, 4)


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
