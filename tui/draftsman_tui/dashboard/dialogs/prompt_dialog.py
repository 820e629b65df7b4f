"""Prompt for a line of text."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import Do, Heading, SubmitDialog, return_value


class PromptDialog(SubmitDialog[Any]):
    """Submits the text, and returns the result; `example` is shown in the empty field."""

    def __init__(self, question: str, example: str, do: Do[Any] = return_value) -> None:
        super().__init__(do)
        self._question = question
        self._example = example

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._question)
            yield Input(placeholder=f"for example: {self._example}" if self._example else "")
            yield Static("", classes="error")
            yield Static("enter: confirm   esc: back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.attempt(event.value.strip())
        else:
            self.show_notice("type a text first, or press esc to go back")
