"""Rows of the job screen that do not scroll: its header, and the chart of its phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.strip import Strip
from textual.widget import Widget

from draftsman_tui.dashboard.jobs.details.row_layout import Row
from draftsman_tui.dashboard.widgets import row_renderer


class FixedRows(Widget):
    """Rows that are always visible, truncated to the width."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()

    def show(self, rows: Sequence[Row]) -> None:
        """Show rows; the same rows as before are not drawn again."""
        if rows != self._rows:
            self._rows = rows
            self.refresh()

    def render_line(self, y: int) -> Strip:
        row = self._rows[y] if y < len(self._rows) else ()
        return row_renderer.render_row(self, row, self.rich_style, self.size.width, cut=True)


class JobHeader(FixedRows):
    """Header of the job screen."""


class PhaseChart(FixedRows):
    """Chart of the phases of a job, as high as its rows."""

    def show(self, rows: Sequence[Row]) -> None:
        self.display = bool(rows)
        if len(rows) != len(self._rows):
            self.styles.height = len(rows)
        super().show(rows)
