"""The chain of retries that a job is in, and the files and the result that it left."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from draftsman.domain.retries.error_classes import ErrorClass
from draftsman.domain.text import first_line
from draftsman.services.jobs.read_model import RetryLink
from draftsman_tui.common import times
from draftsman_tui.common.artifact_text import file_text
from draftsman_tui.common.job_text import DENIED, status_text
from draftsman_tui.common.output import line, styled
from draftsman_tui.dashboard.job.row_layout import Item, Row, note, row_of, section, wrap_row
from draftsman_tui.dashboard.job.snapshot import JobSnapshot
from draftsman_tui.dashboard.job.ticket import written


def chain(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each job of the chain, the request first."""
    if len(seen.chain) < 2:
        return [note(f"{seen.job.name} is no retry, and was not retried", width)]
    return [Item(one.name, tuple(_link(one, seen, width))) for one in seen.chain]


def artifacts(seen: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each file, and then the result."""
    name = seen.job.name
    result = section("result", "Result", list(written(seen.job.result, seen.job, width)))
    if not seen.files and not result:
        return [note(f"{name} left no files" + ("" if seen.over else " so far"), width)]
    files = [Item(f"{one.run}/{one.name}", tuple(_file(one, width, now))) for one in seen.files]
    return [*(files or [note(f"{name} left no files", width)]), *result]


def _file(one: Any, width: int, now: datetime) -> list[Row]:
    made = styled(f"  {times.ago(one.created_at, now)}", "dim")
    return wrap_row(row_of(line(file_text(one), made)), width, 4)


def _link(one: RetryLink, seen: JobSnapshot, width: int) -> list[Row]:
    here = "   this one" if one.number == seen.job.number else ""
    error = DENIED if one.error_class == ErrorClass.DENIED else "red"
    of = f"  retry of D-{one.retry_of}" if one.retry_of else "  the request"
    text = line(
        styled(f"  {one.name:<10}", "bold"),
        status_text(one.status, one.error_class),
        styled(f"{of}{here}", "dim"),
        styled(f"  {first_line(one.last_error)}" if one.last_error else "", error),
    )
    return wrap_row(row_of(text), width, 4)
