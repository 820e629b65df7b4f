"""Confirmation by typing a word, for actions that cannot be undone."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe


class TypedConfirmDialog(Dialog[bool]):
    """Returns True once `word` is entered."""

    def __init__(self, question: str, note: str, word: str) -> None:
        super().__init__()
        self._question = question
        self._note = note
        self._word = word

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Static(safe(self._question), classes="heading")
            yield Static(safe(self._note), classes="body")
            yield Input(placeholder=f"type {self._word} to confirm")
            yield Static("", classes="error")
            yield Static("enter: confirm   esc: back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip().casefold() == self._word.casefold():
            self.dismiss(True)
        else:
            line = self.query_one(".error", Static)
            line.update(safe(f"does not match {self._word}"))
            line.add_class("visible")
