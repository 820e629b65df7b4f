"""Preview of the row under the cursor: where it is, and which job it shows."""

from __future__ import annotations

from time import monotonic
from typing import Final

from draftsman_tui.dashboard.frame.base_screen import BaseScreen
from draftsman_tui.dashboard.jobs.details.loader import JobLoader
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.tables.grouping import GroupHead
from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.preview_pane import PreviewPane
from draftsman_tui.dashboard.widgets.table import ResourceTable

SIDE_WIDTH: Final = 140
"""Width from which the preview is beside the table."""
BELOW_HEIGHT: Final = 40
"""Height from which the preview is below the table."""
SHORT: Final = 3
TALL: Final = 6
"""Rows of the bars of charts."""
STALE: Final = 0.4
"""Seconds for which the previous job stays in the preview while another is loaded."""


class RowPreview:
    """State of the preview of a table screen."""

    def __init__(self, screen: BaseScreen) -> None:
        self._screen = screen
        self._head: GroupHead | None = None
        self._is_wanted = True
        self._is_placed = False
        self._job: int | None = None
        self._pinned: int | None = None
        self._snapshot: JobSnapshot | None = None
        self._moved_at = 0.0

    def toggle(self) -> None:
        """Hide the preview, or show it again."""
        self._is_wanted = not self._is_wanted
        self.place()

    def pin(self, job: int | None) -> None:
        """Show a job while a dialog asks about it, whatever the row; None: that of the row."""
        self._pinned = job
        if self._screen.query(ResourceTable):  # none while the screen is removed
            self.follow()

    def place(self) -> None:
        """Place the preview beside the table or below it, or hide it on small screens."""
        width, height = self._screen.size
        resource = VIEWS[self._screen.view_name]
        side = ""
        if self._is_wanted and resource.has_charts:
            side = "charts tall" if height >= BELOW_HEIGHT else "charts"
        elif self._is_wanted and resource.has_jobs:
            side = "side" if width >= SIDE_WIDTH else "below" if height >= BELOW_HEIGHT else ""
        self._screen.query_one("#panes").set_classes(side)
        self._is_placed = bool(side)
        self.follow()

    def follow(self) -> None:
        """Show the job of the row under the cursor, once it is loaded."""
        table = self._screen.query_one(ResourceTable)
        if self._is_placed and VIEWS[self._screen.view_name].has_charts:
            self._show_charts(table)
            return
        number = None
        head = None
        if self._is_placed:
            head = table.head if self._pinned is None else None
            number = self._pinned
            if number is None and table.row is not None:
                number = VIEWS[self._screen.view_name].job(table.row)
        if number != self._job or head != self._head:
            is_other = number is None or head is not None
            self._job = number
            self._snapshot = None
            self._head = head
            self._moved_at = monotonic()
            self.resume()
            if is_other:
                self.draw()

    def _show_charts(self, table: ResourceTable) -> None:
        """Show the charts of the row under the cursor, or of the first row of its group."""
        row = table.row
        if table.head is not None:
            row = next(iter(table.head.rows), None)
        self._job = self._head = self._snapshot = None
        self.resume()
        pane = self._screen.query_one(PreviewPane)
        height = TALL if self._screen.size.height >= BELOW_HEIGHT else SHORT
        pane.show_charts(VIEWS[self._screen.view_name], row, height)

    def suspend(self) -> None:
        """Stop loading while another screen is shown, unless it asks about the job."""
        if self._pinned is None:
            self._screen.refresher.show_preview(None)

    def resume(self) -> None:
        """Load the job."""
        loader = None if self._job is None else JobLoader(self._job)
        self._screen.refresher.show_preview(loader)

    def show(self, snapshot: JobSnapshot) -> None:
        """Show a loaded job, unless the cursor has moved on."""
        if snapshot.job.number == self._job:
            self._snapshot = snapshot
            self.draw()

    def draw(self) -> None:
        """Redraw, with current times."""
        if VIEWS[self._screen.view_name].has_charts:
            self.follow()
            return
        pane = self._screen.query_one(PreviewPane)
        if self._head is not None:
            pane.show_group(self._head, VIEWS[self._screen.view_name], self._screen.refresher.now)
            return
        is_loading = self._job is not None and self._snapshot is None
        if is_loading and monotonic() - self._moved_at < STALE:
            return
        hints = self._screen.hints_of(self._job or 0)
        pane.show_job(self._snapshot, self._screen.refresher.now, hints)
