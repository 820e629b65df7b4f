"""Tab bar of the job screen."""

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

from draftsman.formats.amounts import count_text
from draftsman_tui.dashboard.widgets import row_renderer

WIDE: Final = 110
"""Width from which the long names are shown."""
COUNTED: Final = 140
"""Width from which the numbers of items are shown."""


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab's label and state; `count` is None unless it is shown."""

    name: str
    short: str
    key: str
    empty: bool = False
    count: int | None = None
    needs_attention: bool = False


class Tabs(Widget):
    """Clickable line of tabs."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES, "tabs--here"}

    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        name: str

    def __init__(self, *, wide: int = WIDE, counted: int = COUNTED) -> None:
        """Create a bar with the widths from which long names and numbers are shown."""
        super().__init__()
        self._wide = wide
        self._counted = counted
        self._tabs: Sequence[Tab] = ()
        self._current = ""

    def show(self, tabs: Sequence[Tab], current: str) -> None:
        """Show tabs; `current` is the name of the selected tab."""
        self._tabs = tabs
        self._current = current
        self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self.rich_style
        segments = []
        for tab in self._tabs:
            part = "dim" if tab.empty else "asks" if tab.needs_attention else ""
            style = base + self._partial(f"rows--{part}") if part else base
            if tab.name == self._current:
                style = base + self._partial("tabs--here")
            segments += [Segment(self._text(tab), style), Segment(" ", base)]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Select the tab under the mouse."""
        end = 0
        for tab in self._tabs:
            end += len(self._text(tab)) + 1
            if event.get_content_offset_capture(self).x < end:
                self.post_message(self.Chosen(tab.name))
                return

    def _text(self, tab: Tab) -> str:
        long = self.size.width >= self._wide
        mark = "●" if tab.needs_attention else ""
        is_counted = self.size.width >= self._counted and tab.count
        count = f" ({count_text(tab.count or 0)})" if is_counted else ""
        return f"{tab.key}:{tab.name if long else tab.short}{count}{mark}{' ' if long else ''}"

    def _partial(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)
