"""Dialogs for a confirmation, a choice, a line or a text, and for progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input, OptionList, Static

from draftsman_tui.dashboard.dialogs.base import (
    Dialog,
    Do,
    SubmitDialog,
    return_value,
    safe,
)


class ConfirmDialog(Dialog[bool]):
    """Yes or no; Enter means no. A long note scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="yes"),
        Binding("n,enter", "answer(False)", "No", id="no"),
    ]

    def __init__(self, question: str, note: str) -> None:
        super().__init__(question, "y: yes   n: no")
        self._note = note

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static(safe(self._note))

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class TypedConfirmDialog(Dialog[bool]):
    """Returns True once `word` is entered; for actions that cannot be undone."""

    def __init__(self, question: str, note: str, word: str) -> None:
        super().__init__(question, "enter: confirm   esc: back")
        self._note = note
        self._word = word

    def body(self) -> ComposeResult:
        yield Static(safe(self._note), classes="body")
        yield Input(placeholder=f"type {self._word} to confirm")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip().casefold() == self._word.casefold():
            self.dismiss(True)
        else:
            self.show_notice(f"does not match {self._word}")


class ChoiceDialog(Dialog[Any]):
    """Returns the value of the chosen line."""

    def __init__(self, question: str, choices: Sequence[tuple[str, object]]) -> None:
        super().__init__(question, "number or enter: choose   esc: back")
        self._choices = choices

    def body(self) -> ComposeResult:
        digits = len(str(len(self._choices)))
        yield OptionList(
            *(
                safe(f"{number:>{digits}}  {name}")
                for number, (name, _) in enumerate(self._choices, 1)
            )
        )

    def on_key(self, event: events.Key) -> None:
        """Choose by number."""
        number = event.character or ""
        if number.isdecimal() and 0 < int(number) <= len(self._choices):
            event.stop()
            self.dismiss(self._choices[int(number) - 1][1])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index][1])


class PromptDialog(SubmitDialog[Any]):
    """Submits a line of text, and returns the result; `example` is shown in the empty field."""

    def __init__(self, question: str, example: str, do: Do[Any] = return_value) -> None:
        super().__init__(do, question, "enter: confirm   esc: back")
        self._example = example

    def body(self) -> ComposeResult:
        yield Input(placeholder=f"for example: {self._example}" if self._example else "")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.attempt(event.value.strip())
        else:
            self.show_notice("type a text first, or press esc to go back")


class TextDialog(Dialog[None]):
    """Read-only text, which scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "leave", "Back", show=False)]

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title, "esc: back")
        self._text = safe(text)

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="body"):
            yield Static(self._text)


class ProgressDialog(Dialog[None]):
    """Progress of a bulk operation, which calls `show`, polls `stopped` and dismisses it."""

    def __init__(self, title: str, total: int) -> None:
        super().__init__(title, "esc: stop after the current job")
        self.stopped = False
        self._total = total
        self._text = f"0 of {total:,}"

    def body(self) -> ComposeResult:
        yield Static(self._text, classes="body")

    def show(self, done: int, refused: int) -> None:
        """Show the progress, unless it is stopped."""
        if not self.stopped:
            rejected = f", {refused:,} rejected" if refused else ""
            self._show_text(f"{done:,} of {self._total:,}{rejected}")

    def action_leave(self) -> None:
        self.stopped = True
        self._show_text("stopping …")

    def _show_text(self, text: str) -> None:
        self._text = text
        for line in self.query(".body").results(Static):
            line.update(text)
