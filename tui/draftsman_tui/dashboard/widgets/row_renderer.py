"""Rendering of rows of cells, with the theme's color for each role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from draftsman.entities.cells import Cell

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
