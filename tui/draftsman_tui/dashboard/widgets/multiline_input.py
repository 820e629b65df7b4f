"""Lines of one's own: Enter hands them in, Ctrl+J begins a new one, a paste keeps its own."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.message import Message
from textual.widgets import TextArea

NEW_LINE: Final = frozenset({"ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"})
"""Of these a terminal tells the first one at least."""


class MultilineInput(TextArea):
    """Grows with its text, up to what the sheet allows."""

    class Submitted(Message):
        """They are to be handed in."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, text: str = "", *, placeholder: str = "") -> None:
        super().__init__(
            text, placeholder=placeholder, tab_behavior="focus", compact=True,
            highlight_cursor_line=False, show_line_numbers=False,
        )  # fmt: skip
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted(self.text))
        elif event.key in NEW_LINE:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        else:
            await super()._on_key(event)
