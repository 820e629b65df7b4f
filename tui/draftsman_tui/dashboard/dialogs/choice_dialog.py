"""Dialog to choose from a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading, safe


class ChoiceDialog(Dialog[Any]):
    """Returns the value of the chosen line."""

    def __init__(self, question: str, choices: Sequence[tuple[str, object]]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._question)
            digits = len(str(len(self._choices)))
            yield OptionList(
                *(
                    safe(f"{number:>{digits}}  {name}")
                    for number, (name, _) in enumerate(self._choices, 1)
                )
            )
            yield Static("number or enter: choose   esc: back", classes="hint")

    def on_key(self, event: events.Key) -> None:
        """Choose by number."""
        number = event.character or ""
        if number.isdecimal() and 0 < int(number) <= len(self._choices):
            event.stop()
            self.dismiss(self._choices[int(number) - 1][1])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index][1])
