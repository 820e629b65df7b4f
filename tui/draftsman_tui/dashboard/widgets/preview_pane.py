"""Pane with the preview of the row under the cursor."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from draftsman_tui.dashboard.job import row_layout
from draftsman_tui.dashboard.job.preview import preview
from draftsman_tui.dashboard.widgets.item_list import ItemList

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from draftsman_tui.dashboard.job.snapshot import JobSnapshot


class PreviewPane(ItemList, can_focus=False):
    """Scrolls with the mouse; the table keeps the focus."""

    def __init__(self) -> None:
        super().__init__()
        self._job: int | None = None

    def show_job(self, snapshot: JobSnapshot | None, now: datetime) -> None:
        """Show a job; None: nothing, or not loaded yet."""
        job = None if snapshot is None else snapshot.job.number
        if job != self._job:
            self._job = job
            self.reset(None, selectable=False, follows=False)
            self.go_to_row(0)
        self.show(partial(_items, snapshot, now))


def _items(snapshot: JobSnapshot | None, now: datetime, width: int) -> Sequence[row_layout.Item]:
    return [] if snapshot is None else preview(snapshot, width, now)
