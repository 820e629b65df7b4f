"""Dialog with a scrollable text."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading, safe


class TextDialog(Dialog[None]):
    """Read-only text."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "leave", "Back", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = safe(text)

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._title)
            with VerticalScroll(classes="body"):
                yield Static(self._text)
            yield Static("esc: back", classes="hint")
