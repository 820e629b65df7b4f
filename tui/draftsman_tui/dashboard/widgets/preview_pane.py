"""Pane with the preview of the row under the cursor."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from draftsman_tui.dashboard.jobs.details import row_layout
from draftsman_tui.dashboard.jobs.details.preview import preview
from draftsman_tui.dashboard.tables.resource import Cell, Resource
from draftsman_tui.dashboard.widgets.item_list import ItemList

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
    from draftsman_tui.dashboard.tables.grouping import GroupHead


MAX_ROWS: Final = 100
"""Rows of a group that its preview lists."""


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

    def show_job(self, snapshot: JobSnapshot | None, now: datetime) -> None:
        """Show a job; None: nothing, or not loaded yet."""
        job = None if snapshot is None else snapshot.job.number
        if job != self._job:
            self._job = job
            self.reset(None, selectable=False, follows=False)
            self.go_to_row(0)
        self.show(partial(_items, snapshot, now))


def group_items(
    head: GroupHead, resource: Resource[Any], now: datetime, width: int
) -> list[row_layout.Item]:
    """Return the name of a group, the counts of its states, and its first rows."""
    cells = [resource.cells(row, now) for row in head.rows]
    states = Counter(row[1].text.strip() for row in cells)
    counts = " · ".join(_counted(state, count) for state, count in states.most_common())
    title: row_layout.Row = (Cell(head.label, "head"), Cell(f"  {len(cells):,} rows", "dim"))
    rows = [(row[0], Cell("  "), row[1], Cell("  "), row[2]) for row in cells[:MAX_ROWS]]
    return [row_layout.Item("", (title, (Cell(counts),), (), *rows))]


def _counted(state: str, count: int) -> str:
    is_noun = state in ("question", "approval")
    return f"{count:,} {state}{'s' if is_noun and count != 1 else ''}"


def _items(snapshot: JobSnapshot | None, now: datetime, width: int) -> Sequence[row_layout.Item]:
    return [] if snapshot is None else preview(snapshot, width, now)
