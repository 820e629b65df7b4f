"""Asks for one line."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from draftsman_tui.dashboard.screens.dialog import Dialog, safe


class Prompt(Dialog[str]):
    """Returns what was typed."""

    def __init__(self, question: str, example: str) -> None:
        super().__init__()
        self._question = question
        self._example = example

    def compose(self) -> ComposeResult:
        """Show the question and a line."""
        with Vertical(classes="box"):
            yield Static(safe(self._question), classes="heading")
            yield Input(placeholder=self._example)
            yield Static("enter: do it   esc: back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return it."""
        self.dismiss(event.value.strip() or None)
