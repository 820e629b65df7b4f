"""Draws rows of cells, each role in its colour of the theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from draftsman_tui.dashboard.resource import Cell

ROLES: Final = ("head", "key", "dim", "calm", "busy", "asks", "warns", "bad", "good")
CLASSES: Final = frozenset(f"rows--{role}" for role in ROLES)
"""Component classes of a widget that draws rows."""


def render_row(widget: Widget, row: Sequence[Cell], base: Style, width: int, *, cut: bool) -> Strip:
    """Return the row; with `cut` what has no room ends with a sign."""
    segments = [Segment(cell.text, base + _style(widget, cell.role)) for cell in row]
    made = Strip(segments)
    if cut and made.cell_length > width:
        made = Strip([*made.crop(0, width - 1), Segment("…", base)])
    return made.adjust_cell_length(width, base)


def _style(widget: Widget, role: str) -> Style:
    if role not in ROLES:
        return Style()
    return widget.get_component_rich_style(f"rows--{role}", partial=True)
