"""Rows of cells, with the theme's color for each role, and rows that do not scroll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from draftsman.entities.cells import Cell
from draftsman_tui.dashboard.jobs.details.row_layout import Row

ROLES: Final = ("head", "key", "dim", "calm", "busy", "asks", "warns", "bad", "good", "denied")
CLASSES: Final = frozenset(f"rows--{role}" for role in ROLES)
"""Component classes of a widget that renders rows."""


def render_row(widget: Widget, row: Sequence[Cell], base: Style, width: int, *, cut: bool) -> Strip:
    """Render a row; with `cut`, a long row ends with an ellipsis."""
    segments = [Segment(cell.text, base + _style(widget, cell.role)) for cell in row]
    strip = Strip(segments)
    if cut and strip.cell_length > width:
        strip = Strip([*strip.crop(0, width - 1), Segment("…", base)])
    return strip.adjust_cell_length(width, base)


def _style(widget: Widget, role: str) -> Style:
    if role not in ROLES:
        return Style()
    return widget.get_component_rich_style(f"rows--{role}", partial=True)


class FixedRows(Widget):
    """Rows that are always visible, truncated to the width."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*CLASSES}

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
        return render_row(self, row, self.rich_style, self.size.width, cut=True)


class JobHeader(FixedRows):
    """Header of the job screen."""


class PhaseChart(FixedRows):
    """Chart of the phases of a job, as high as its rows."""

    def show(self, rows: Sequence[Row]) -> None:
        self.display = bool(rows)
        if len(rows) != len(self._rows):
            self.styles.height = len(rows)
        super().show(rows)
