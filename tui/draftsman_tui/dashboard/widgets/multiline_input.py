"""Multi-line input: Enter submits, Ctrl+J inserts a line break, pasted line breaks are kept."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

NEW_LINE: Final = frozenset({"ctrl+j", "shift+enter", "alt+enter", "ctrl+enter"})
"""Every terminal sends at least the first."""


class MultilineInput(TextArea):
    """Text area that grows with its text, up to the limit of the style sheet."""

    class Submitted(Message):
        """The text was submitted."""

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

    def render_line(self, y: int) -> Strip:
        """Render a line, none without columns: Textual cannot wrap a placeholder in them."""
        return super().render_line(y) if self.content_size.width else Strip([])
