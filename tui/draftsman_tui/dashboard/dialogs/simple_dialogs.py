"""Dialogs for a confirmation, a choice, a line or a text, and for progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, OptionList, Static

from draftsman_tui.dashboard.dialogs.base import (
    Dialog,
    Do,
    Heading,
    SubmitDialog,
    return_value,
    safe,
)


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


# Dialog to choose from a list.


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


# Prompt for a line of text.


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


# Dialog with a scrollable text.


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


# Progress of a bulk operation; Escape stops it after the current job.


class ProgressDialog(Dialog[None]):
    """Progress display; the operation calls `show`, polls `stopped` and dismisses it."""

    def __init__(self, title: str, total: int) -> None:
        super().__init__()
        self.stopped = False
        self._title = title
        self._total = total
        self._text = f"0 of {total:,}"

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._title)
            yield Static(self._text, classes="body")
            yield Static("esc: stop after the current job", classes="hint")

    def show(self, done: int, refused: int) -> None:
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
