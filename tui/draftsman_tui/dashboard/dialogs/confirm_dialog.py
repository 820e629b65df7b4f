"""Confirmation dialogs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading, safe


class ConfirmDialog(Dialog[bool]):
    """Yes or no; Enter means no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="yes"),
        Binding("n,enter", "answer(False)", "No", id="no"),
    ]

    def __init__(self, question: str, note: str) -> None:
        super().__init__()
        self._question = question
        self._note = note

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._question)
            yield Static(safe(self._note), classes="body")
            yield Static("y: yes   n: no", classes="hint")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class TypedConfirmDialog(Dialog[bool]):
    """Returns True once `word` is entered; for actions that cannot be undone."""

    def __init__(self, question: str, note: str, word: str) -> None:
        super().__init__()
        self._question = question
        self._note = note
        self._word = word

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._question)
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
