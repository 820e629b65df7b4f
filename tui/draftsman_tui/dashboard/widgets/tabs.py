"""The line of tabs: the keys and names of parts, and which is in view. A click chooses one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from draftsman_tui.dashboard.widgets import row_renderer

WIDE: Final = 110
"""Cells from which the long names are shown."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab."""

    name: str
    short: str
    key: str
    empty: bool = False
    calls: bool = False


class Tabs(Widget):
    """One line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES, "tabs--here"}

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        super().__init__()
        self._tabs: Sequence[Tab] = ()
        self._here = ""

    def show(self, tabs: Sequence[Tab], here: str) -> None:
        """Show these; `here` is in view."""
        self._tabs, self._here = tabs, here
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw them."""
        base = self.rich_style
        segments = []
        for tab in self._tabs:
            part = "dim" if tab.empty else "asks" if tab.calls else ""
            style = base + self._partial(f"rows--{part}") if part else base
            if tab.name == self._here:
                style = base + self._partial("tabs--here")
            segments += [Segment(self._text(tab), style), Segment(" ", base)]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Choose the tab that the mouse is on."""
        end = 0
        for tab in self._tabs:
            end += len(self._text(tab)) + 1
            if event.get_content_offset_capture(self).x < end:
                self.post_message(self.Chosen(tab.name))
                return

    def _text(self, tab: Tab) -> str:
        long = self.size.width >= WIDE
        mark = "●" if tab.calls else ""
        return f"{tab.key} {tab.name if long else tab.short}{mark}{' ' if long else ''}"

    def _partial(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)
