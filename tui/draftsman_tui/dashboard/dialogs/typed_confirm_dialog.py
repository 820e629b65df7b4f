"""Asks before what cannot be undone: it is to be typed what is meant."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe


class TypedConfirmDialog(Dialog[bool]):
    """Yes once `word` stands there and Enter is pressed."""

    def __init__(self, question: str, note: str, word: str) -> None:
        super().__init__()
        self._question = question
        self._note = note
        self._word = word

    def compose(self) -> ComposeResult:
        """Show what would be done, and a line."""
        with Vertical(classes="box"):
            yield Static(safe(self._question), classes="heading")
            yield Static(safe(self._note), classes="body")
            yield Input(placeholder=f"to do it, type {self._word}")
            yield Static("", classes="error")
            yield Static("enter: do it   esc: back, nothing is done", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do it, if it is meant."""
        if event.value.strip().casefold() == self._word.casefold():
            self.dismiss(True)
        else:
            line = self.query_one(".error", Static)
            line.update(safe(f"that is not {self._word}"))
            line.add_class("told")
