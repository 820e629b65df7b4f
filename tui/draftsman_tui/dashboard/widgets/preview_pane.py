"""Pane with the preview of the row under the cursor: a group of rows, or a job.

The preview of a job has its state, its open questions and its newest events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from draftsman.entities.cells import Cell
from draftsman.errors import CommandHint
from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.jobs.details import header
from draftsman_tui.dashboard.jobs.details.row_layout import Item, Row, lines, section, wrap_row
from draftsman_tui.dashboard.jobs.details.section_items import bounded
from draftsman_tui.dashboard.jobs.details.sections_tab import questions, timeline
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.tables.grouping import GroupHead
from draftsman_tui.dashboard.tables.resource import Resource
from draftsman_tui.dashboard.widgets.item_list import ItemList

MAX_ROWS: Final = 100
"""Rows of a group to show."""
EVENTS: Final = 8
"""Newest events of a job to show."""
REQUEST_ROWS: Final = 8
"""Rows of the request of a job to show."""
HANG: Final = 2


class PreviewPane(ItemList, can_focus=False):
    """Scrolls with the mouse; the table keeps the focus."""

    def __init__(self) -> None:
        super().__init__()
        self._job: int | None = None

    def show_group(self, head: GroupHead, resource: Resource[Any], now: datetime) -> None:
        """Show a group of rows."""
        if self._job is not None:
            self._job = None
            self.reset(None, selectable=False, follows=False)
        self.show(partial(group_items, head, resource, now))

    def show_charts(self, resource: Resource[Any], row: Any, height: int) -> None:
        """Show the charts of a row; None: nothing."""
        self.show(partial(chart_items, resource, row, height))

    def show_job(
        self, snapshot: JobSnapshot | None, now: datetime, hints: Callable[[CommandHint], str] = str
    ) -> None:
        """Show a job, with commands as `hints` words them; None: nothing, or not loaded yet."""
        job = None if snapshot is None else snapshot.job.number
        if job != self._job:
            self._job = job
            self.reset(None, selectable=False, follows=False)
            self.go_to_row(0)
        self.show(partial(job_items, snapshot, now, hints))


def chart_items(resource: Resource[Any], row: Any, height: int, width: int) -> list[Item]:
    """Return the charts of a row."""
    if row is None:
        return []
    return [Item("", tuple(map(tuple, resource.charts(row, width, height))))]


def group_items(head: GroupHead, resource: Resource[Any], now: datetime, width: int) -> list[Item]:
    """Return the name of a group, the counts of its states, and its first rows."""
    cells = [resource.cells(row, now) for row in head.rows]
    states = Counter(row[1].text.strip() for row in cells)
    counts = " · ".join(_counted(state, count) for state, count in states.most_common())
    noun = "row" if head.count == "1" else "rows"
    title: Row = (Cell(head.label, "head"), Cell(f"  {head.count} {noun}", "dim"))
    rows = [(row[0], Cell("  "), row[1], Cell("  "), row[2]) for row in cells[:MAX_ROWS]]
    return [Item("", (title, (Cell(counts),), (), *rows))]


def _counted(state: str, count: int) -> str:
    is_noun = state in ("question", "approval")
    return f"{count:,} {state}{'s' if is_noun and count != 1 else ''}"


def job_items(
    snapshot: JobSnapshot | None, now: datetime, hints: Callable[[CommandHint], str], width: int
) -> list[Item]:
    """Return the state of a job, its open questions, its request and its newest events."""
    if snapshot is None:
        return []
    job = snapshot.job
    title = one_line(f"{job.name} · {job.title}")
    rows = header.head(snapshot, now, width - 2, hints)
    if snapshot.open is not None and not (snapshot.why and snapshot.why.paused):
        del rows[header.WHAT_NEXT]  # the question follows
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
    text = job.request and job.request.text
    request = list(lines(bounded(text, job), width)) if text else []
    items += section("request", "Request", request[:REQUEST_ROWS])
    events = [row for item in timeline(snapshot, width, now)[-EVENTS:] for row in item.rows]
    return [*items, *section("events", "Newest events", events)]


def _wrapped(row: Row, width: int) -> Iterator[Row]:
    yield from wrap_row(row, width, HANG) if row else ()
