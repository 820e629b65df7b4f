"""Marks of a table's rows, for commands on several rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from textual.message import Message

from draftsman_tui.dashboard.widgets.mouse_table import MouseTable


class MarkedTable(MouseTable):
    """Table whose rows can be marked; `marked` has their keys."""

    class Marked(Message):
        """The marks changed."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: set[str] = set()
        self._last_mark = 0

    @abstractmethod
    def keys_at(self, index: int) -> set[str]:
        """Return the key of a row, or those of the rows of a group's head."""

    def mark(self) -> None:
        """Toggle the mark of the row under the cursor, and move to the next."""
        if self.length:
            self.toggle(self.cursor)
            self.move_to(self.cursor + 1)

    def toggle(self, index: int) -> None:
        keys = self.keys_at(index)
        if keys <= self.marked:
            self.marked -= keys
        else:
            self.marked |= keys
        self._last_mark = index
        self._marks_changed()

    def mark_range(self) -> None:
        """Mark from the last mark to the cursor."""
        self.mark_between(self._last_mark, self.cursor)

    def mark_between(self, start: int, end: int) -> None:
        first, last = sorted((start, end))
        for index in range(first, min(last + 1, self.length)):
            self.marked |= self.keys_at(index)
        self._last_mark = end
        self._marks_changed()

    def unmark(self) -> None:
        """Clear all marks."""
        self.marked.clear()
        self._marks_changed()

    def keep_marked(self, keys: Iterable[str]) -> None:
        """Clear all marks but those of the given keys."""
        self.marked.intersection_update(keys)
        self._marks_changed()

    def _marks_changed(self) -> None:
        self.refresh()
        self.post_message(self.Marked())
