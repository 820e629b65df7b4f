"""Header of the job screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.strip import Strip
from textual.widget import Widget

from draftsman_tui.dashboard.job.row_layout import Row
from draftsman_tui.dashboard.widgets import row_renderer


class JobHeader(Widget):
    """Rows that are always visible, truncated to the width."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()

    def show(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.refresh()

    def render_line(self, y: int) -> Strip:
        row = self._rows[y] if y < len(self._rows) else ()
        return row_renderer.render_row(self, row, self.rich_style, self.size.width, cut=True)
