"""What the mouse does to a table: nothing that the keys cannot do."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Final

from textual import events
from textual.message import Message
from textual.scroll_view import ScrollView

NOTCH: Final = 3
"""Rows that one notch of the wheel moves the cursor."""


class MouseTable(ScrollView):
    """A click chooses, on the head it sorts, with ctrl it marks; two open; a drag marks a range."""

    ALLOW_SELECT: ClassVar[bool] = False
    _dragged_from: int | None = None

    class Opened(Message):
        """A row was clicked twice."""

    class Headed(Message):
        """A head was clicked."""

        def __init__(self, head: str) -> None:
            super().__init__()
            self.head = head

    @abstractmethod
    def row_at(self, y: int) -> int | None:
        """Return the place of the row on a line, None for the head and where there is none."""

    @abstractmethod
    def head_at(self, x: int) -> str | None:
        """Return the head that is there."""

    @abstractmethod
    def go(self, place: int) -> None:
        """Put the cursor on a row."""

    @abstractmethod
    def toggle(self, place: int) -> None:
        """Mark a row, or take its mark off."""

    @abstractmethod
    def mark_between(self, one: int, other: int) -> None:
        """Mark the rows from one to the other."""

    @abstractmethod
    def action_move(self, by: int) -> None:
        """Move the cursor."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where a drag would begin."""
        self._dragged_from = self.row_at(event.y)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark what the mouse is drawn over."""
        begin, here = self._dragged_from, self.row_at(event.y)
        if event.button == 1 and begin is not None and here is not None and here != begin:
            self.mark_between(begin, here)
            self.go(here)

    def on_mouse_up(self) -> None:
        """Let go."""
        self._dragged_from = None

    def on_click(self, event: events.Click) -> None:
        """Sort, mark, choose or open."""
        place = self.row_at(event.y)
        if place is None:
            head = self.head_at(event.x) if event.y == 0 else None
            if head is not None:
                self.post_message(self.Headed(head))
        elif event.ctrl:
            self.toggle(place)
            self.go(place)
        else:
            self.go(place)
            if event.chain == 2:
                self.post_message(self.Opened())

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move on; the cursor stays in view, so that what comes in does not pull the table back."""
        event.stop()
        self.action_move(NOTCH)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move back."""
        event.stop()
        self.action_move(-NOTCH)
