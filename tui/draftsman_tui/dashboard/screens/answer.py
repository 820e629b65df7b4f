"""Answers a question: a choice by its number, or words of one's own where they are allowed."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, OptionList, Static

from draftsman.domain.question import Question
from draftsman_tui.cli import times
from draftsman_tui.dashboard.screens.dialog import Dialog, safe


class Answer(Dialog[str]):
    """Returns the value of a choice, or the text."""

    def __init__(self, question: Question, who: str, error: str = "") -> None:
        super().__init__()
        self._question = question
        self._who = who
        self._error = error

    def compose(self) -> ComposeResult:
        """Show the question, its context, and what can be said."""
        asked = self._question
        until = f", expires {times.left(asked.expires_at)}" if asked.expires_at else ""
        with Vertical(classes="box"):
            yield Static(safe(f"{asked.name} asks {self._who}{until}"), classes="heading")
            with VerticalScroll(classes="body"):
                yield Static(safe(asked.text))
                if asked.context_snippet:
                    yield Static(safe(f"\n{asked.context_snippet}", "dim"))
            if asked.choices:
                yield OptionList(*(self._choice(place) for place in range(len(asked.choices))))
            if asked.freeform_allowed or not asked.choices:
                yield Input(placeholder="your own words, enter hands them in")
            yield Static(safe(self._error), classes="error")
            number = "1-9 or enter: choose   " if asked.choices else ""
            yield Static(f"{number}esc: back, nothing is said", classes="hint")

    def on_mount(self) -> None:
        """Begin with the choices, or with the line where there are none."""
        self.query_one(OptionList if self._question.choices else Input).focus()

    def _choice(self, place: int) -> Text:
        choice = self._question.choices[place]
        note = f"  {choice['description']}" if choice.get("description") else ""
        return safe(f"{place + 1}  {choice['label']}{note}")

    def on_key(self, event: events.Key) -> None:
        """Take a number for the choice it stands before, unless somebody is writing."""
        if event.character is None or not event.character.isdigit():
            return
        if isinstance(self.focused, Input) or not 0 < int(event.character) <= len(
            self._question.choices
        ):
            return
        event.stop()
        self._take(int(event.character) - 1)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the choice."""
        self._take(event.option_index)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the words."""
        if event.value.strip():
            self.dismiss(event.value.strip())

    def _take(self, place: int) -> None:
        self.dismiss(str(self._question.choices[place]["value"]))
