"""Preview of a job beside or below a table: its state, its open questions and its newest events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from draftsman_tui.dashboard.events.tab import timeline
from draftsman_tui.dashboard.jobs.details.header import WHAT_NEXT, head
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, lines, section, wrap_row
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.ticket_tab import bounded
from draftsman_tui.dashboard.questions.tab import questions
from draftsman_tui.dashboard.tables.resource import Cell
from draftsman_tui.terminal.output import one_line

EVENTS: Final = 8
"""Newest events to show."""
REQUEST_ROWS: Final = 8
"""Rows of the request to show."""
HANG: Final = 2


def preview(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return the items of the preview for a width in cells."""
    job = snapshot.job
    title = one_line(f"{job.name} · {job.ticket_title or job.type}")
    rows = head(snapshot, now, width - 2)
    if snapshot.open is not None and not (snapshot.why and snapshot.why.paused):
        del rows[WHAT_NEXT]  # the question follows
    items = [
        Item("title", tuple(wrap_row((Cell(title, "head"),), width, HANG))),
        Item("head", tuple(wrapped for row in rows for wrapped in _wrapped(row, width))),
    ]
    if snapshot.open is not None:
        names = {question.name for question in snapshot.open_questions}
        open_items = [item for item in questions(snapshot, width, now) if item.key in names]
        heading = "Question" if len(open_items) == 1 else "Questions"
        rows = [row for item in open_items for row in item.rows]
        items += section("question", heading, rows[:-1])  # the last is blank
    request = list(lines(bounded(job.ticket_text or "", job), width)) if job.ticket_text else []
    items += section("request", "Request", request[:REQUEST_ROWS])
    events = [row for item in timeline(snapshot, width, now)[-EVENTS:] for row in item.rows]
    return [*items, *section("events", "Newest events", [_shortened(row) for row in events])]


def _wrapped(row: Row, width: int) -> Iterator[Row]:
    yield from wrap_row(row, width, HANG) if row else ()


def _shortened(row: Row) -> Row:
    """Return the time, the kind and the new status of an event, without its details."""
    return row[:3]
