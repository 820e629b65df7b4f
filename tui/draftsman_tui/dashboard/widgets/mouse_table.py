"""Mouse support of tables; every action also has a key."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Final

from textual import events
from textual.message import Message

from draftsman_tui.dashboard.widgets.cursor_list import CursorList

NOTCH: Final = 3
"""Rows per wheel notch."""


class MouseTable(CursorList):
    """Click selects, on the head sorts, with Ctrl marks; double click opens; drag marks a range."""

    ALLOW_SELECT: ClassVar[bool] = False
    _dragged_from: int | None = None

    class Headed(Message):
        """A column head was clicked."""

        def __init__(self, head: str) -> None:
            super().__init__()
            self.head = head

    @abstractmethod
    def row_at(self, y: int) -> int | None:
        """Return the index of the row on a line, if any."""

    @abstractmethod
    def head_at(self, x: int) -> str | None:
        """Return the sortable column head at a position."""

    @abstractmethod
    def toggle(self, index: int) -> None:
        """Toggle the mark of a row."""

    @abstractmethod
    def mark_between(self, start: int, end: int) -> None:
        """Mark a range of rows."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Record the start of a drag."""
        self._dragged_from = self.row_at(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark the dragged range."""
        start, end = self._dragged_from, self.row_at(event.y)
        if event.button == 1 and start is not None and end is not None and end != start:
            self.mark_between(start, end)
            self.move_to(end)

    def on_mouse_up(self) -> None:
        self._dragged_from = None

    def on_click(self, event: events.Click) -> None:
        """Sort, mark, select or open."""
        index = self.row_at(event.y)
        if index is None:
            head = self.head_at(event.x) if event.y == 0 else None
            if head is not None:
                self.post_message(self.Headed(head))
        elif event.ctrl:
            self.toggle(index)
            self.move_to(index)
        else:
            self.move_to(index)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move the cursor, so that new rows do not scroll the table back to it."""
        event.stop()
        self.action_move(NOTCH)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-NOTCH)
