"""Confirmation dialog."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe


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
            yield Static(safe(self._question), classes="heading")
            yield Static(safe(self._note), classes="body")
            yield Static("y: yes   n: no", classes="hint")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)
