"""Line about decisions that can still be undone."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static


class UndoLine(Static):
    """Shown while a decision is in its undo window, with the time that is left."""

    def show(self, text: str) -> None:
        """Show the line; "" hides it."""
        self.set_class(bool(text), "visible")
        if text:
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))
