"""Base of lists with a cursor that stays in view."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.scroll_view import ScrollView


class CursorList(ScrollView, can_focus=True):
    """Scrollable entries of one or more rows, below `HEAD` fixed rows."""

    HEAD: ClassVar[int] = 0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="up"),
        Binding("down,j", "move(1)", "Down", show=False, id="down"),
        Binding("home,g", "end(False)", "First", show=False, id="first"),
        Binding("end,G", "end(True)", "Last", show=False, id="last"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="half-page-down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="half-page-up"),
    ]

    class Moved(Message):
        """The cursor moved to another entry."""

    class Opened(Message):
        """An entry was double-clicked."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor = 0
        """Index of the entry under the cursor."""
        self._base_style: Style | None = None

    @property
    def rich_style(self) -> Style:
        """The style of the widget, which is costly to derive for each line."""
        if self._base_style is None:
            self._base_style = super().rich_style
        return self._base_style

    def notify_style_update(self) -> None:
        """Forget the style after a change of theme or classes."""
        self._base_style = None
        super().notify_style_update()

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of entries."""

    @abstractmethod
    def action_move(self, by: int) -> None:
        """Move the cursor."""

    @abstractmethod
    def action_page(self, pages: float) -> None:
        """Move by a number of screens."""

    @abstractmethod
    def action_end(self, last: bool) -> None:
        """Move the cursor to the first or the last entry."""

    def span(self, index: int) -> tuple[int, int]:
        """Return the range of rows of an entry."""
        return index, index + 1

    @property
    def top(self) -> int:
        """First visible row."""
        return round(self.scroll_y)

    @property
    def visible_rows(self) -> int:
        """Number of rows that fit below the head."""
        return max(1, self.size.height - self.HEAD)

    def move_to(self, index: int, *, scroll: bool = True) -> None:
        """Move the cursor to an entry, and scroll it into view."""
        index = self._clamp(index)
        was = self.cursor
        top = self.top
        if index != was:
            self.cursor = index
            self.post_message(self.Moved())
        if scroll:
            self.keep_in_view()
        if self.top != top:
            self.refresh()
        elif index != was:
            self.refresh(*(self._region(entry) for entry in (was, index)))

    def _region(self, index: int) -> Region:
        """Return the lines of an entry, relative to the widget."""
        start, end = self.span(index)
        return Region(0, self.HEAD + start - self.top, self.size.width, max(1, end - start))

    def keep_in_view(self) -> None:
        """Scroll as little as needed to show the entry under the cursor."""
        start, end = self.span(self.cursor)
        if start < self.top:
            self.go_to_row(start)
        elif end > self.top + self.visible_rows:
            self.go_to_row(min(start, end - self.visible_rows))

    def go_to_row(self, row: int) -> None:
        """Scroll to a row, even if the scrollbar does not include new rows yet."""
        self.scroll_to(y=max(0, row), animate=False, immediate=True, force=True)

    def _clamp(self, index: int) -> int:
        return max(0, min(index, self.length - 1))
