"""Asks for one line."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import Do, SubmitDialog, kept, safe


class PromptDialog(SubmitDialog[Any]):
    """Tries what was typed, and returns what became of it."""

    def __init__(self, question: str, example: str, do: Do[Any] = kept) -> None:
        super().__init__(do)
        self._question = question
        self._example = example

    def compose(self) -> ComposeResult:
        """Show the question and a line."""
        with Vertical(classes="box"):
            yield Static(safe(self._question), classes="heading")
            yield Input(placeholder=self._example)
            yield Static("", classes="error")
            yield Static("enter: do it   esc: back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Try it."""
        if event.value.strip():
            self.attempt(event.value.strip())
        else:
            self.dismiss(None)
