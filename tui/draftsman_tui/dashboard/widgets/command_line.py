"""The line at the bottom: `:` for commands, `/` for filters, with completion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.widgets import Input


class CommandLine(Input):
    """Hidden until it is opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("tab", "complete", "Complete", show=False),
    ]

    class Entered(Message):
        """Something was typed, for `:` or for `/`."""

        def __init__(self, kind: str, text: str) -> None:
            super().__init__()
            self.kind = kind
            self.text = text

    class Left(Message):
        """It was closed again."""

    kind = ":"

    def open(self, kind: str, text: str, known: Iterable[str]) -> None:
        """Take a line; `known` is what is suggested."""
        self.kind = kind
        self.placeholder = "command" if kind == ":" else "words status:failed repo: by: age<1h /re/"
        self.suggester = SuggestFromList(known, case_sensitive=False)
        self.value = text
        self.cursor_position = len(text)
        self.add_class("open")
        self.screen.set_focus(self)  # now, and not once other keys have gone elsewhere

    def close(self) -> None:
        """Hide again."""
        self.remove_class("open")
        self.post_message(self.Left())

    def action_leave(self) -> None:
        """Close, and do nothing."""
        self.close()

    def action_complete(self) -> None:
        """Take what is suggested."""
        self.action_cursor_right()
        self.cursor_position = len(self.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand it on; whoever takes it closes the line."""
        event.stop()
        self.post_message(self.Entered(self.kind, self.value.strip()))
