"""Retries tab and files tab."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from draftsman.domain.ids import job_name
from draftsman.domain.read_models import RetryLink
from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.domain.text import first_line
from draftsman_tui.common import times
from draftsman_tui.common.artifact_text import file_text
from draftsman_tui.common.job_text import DENIED, status_text
from draftsman_tui.common.output import line, styled
from draftsman_tui.dashboard.job.row_layout import Item, Row, note, row_of, section, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.job.ticket import json_rows


def retries(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each job of the retry chain, oldest first."""
    if len(snapshot.chain) < 2:
        return [note(f"{snapshot.job.name}: no retries", width)]
    return [Item(link.name, tuple(_link_rows(link, snapshot, width))) for link in snapshot.chain]


def artifacts(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each file, and then the result."""
    name = snapshot.job.name
    result = section("result", "Result", list(json_rows(snapshot.job.result, snapshot.job, width)))
    if not snapshot.files and not result:
        return [note(f"{name} has no files" + ("" if snapshot.over else " yet"), width)]
    files = [
        Item(f"{file.run}/{file.name}", tuple(_file_rows(file, width, now)))
        for file in snapshot.files
    ]
    return [*(files or [note(f"{name} has no files", width)]), *result]


def _file_rows(file: Any, width: int, now: datetime) -> list[Row]:
    created = styled(f"  {times.ago(file.created_at, now)}", "dim")
    return wrap_row(row_of(line(file_text(file), created)), width, 4)


def _link_rows(link: RetryLink, snapshot: JobSnapshot, width: int) -> list[Row]:
    marker = "   this job" if link.number == snapshot.job.number else ""
    error = DENIED if link.error_class == ErrorClass.DENIED else "red"
    origin = f"  retry of {job_name(link.retry_of)}" if link.retry_of else "  original job"
    text = line(
        styled(f"  {link.name:<10}", "bold"),
        status_text(link.status, link.error_class),
        styled(f"{origin}{marker}", "dim"),
        styled(f"  {first_line(link.last_error)}" if link.last_error else "", error),
    )
    return wrap_row(row_of(text), width, 4)
