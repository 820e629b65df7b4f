"""Answers a question: a choice by its number, or words of one's own where they are allowed."""

from __future__ import annotations

from typing import Any, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import OptionList, Static

from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.dialogs.base import safe
from draftsman_tui.dashboard.dialogs.question_dialog import QuestionDialog
from draftsman_tui.dashboard.widgets.multiline_input import MultilineInput

AT_ONCE: Final = 9
"""Choices of which one digit is enough; with more, Enter ends the number."""

WIDEST: Final = 48
"""Columns of a choice, after which what is said of the others does not move to the right."""


class AnswerDialog(QuestionDialog[Any]):
    """Tries the value of a choice, or the text; returns what became of it."""

    def __init__(self, *asked: Any, error: str = "", text: str = "", **how: Any) -> None:
        super().__init__(*asked, **how)
        self._error = error
        self._text = text
        self._number = ""

    @property
    def typed(self) -> str:
        """The words of one's own."""
        found = self.query(MultilineInput)
        return found.first().text.strip() if found else ""

    def compose(self) -> ComposeResult:
        """Show the question, its context, and what can be said."""
        asked = self.question
        many = len(asked.choices) > AT_ONCE
        with Vertical(classes="box tall" if many else "box"):
            yield Static(classes="heading")
            with VerticalScroll(classes="body"):
                yield Static(safe(asked.text))
                if asked.context_snippet:
                    yield Static(safe(f"\n{asked.context_snippet}", "dim"))
            if asked.choices:
                yield OptionList(
                    *(self._choice(place) for place in range(len(asked.choices))), classes="grow"
                )
            if asked.freeform_allowed or not asked.choices:
                yield MultilineInput(self._text, placeholder="your own words")
            yield Static(classes="error")
            yield Static(self._hint(), classes="hint")

    def on_mount(self) -> None:
        """Begin with the choices, or with the words where there are none."""
        self.show_notice(self._error)
        writing = self.query(MultilineInput) if self._text or not self.question.choices else None
        (writing.first() if writing else self.query_one(OptionList)).focus()

    def on_key(self, event: events.Key) -> None:
        """Take a number for the choice it stands before, unless somebody is writing."""
        if isinstance(self.focused, MultilineInput) or not self.question.choices:
            return
        if event.character is not None and event.character.isdecimal():
            event.stop()
            self._type(self._number + event.character)
        elif event.key == "backspace" and self._number:
            event.stop()
            self._type(self._number[:-1])

    def on_option_list_option_highlighted(self) -> None:
        """Forget a number once the arrows went elsewhere."""
        place = self.query_one(OptionList).highlighted
        if self._number and place != int(self._number) - 1:
            self._number = ""

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the choice."""
        self._take(event.option_index)

    def on_multiline_input_submitted(self, event: MultilineInput.Submitted) -> None:
        """Take the words."""
        if event.text.strip():
            self.attempt(event.text.strip())

    def _type(self, number: str) -> None:
        """Take a number as far as it is typed: that choice is shown, and taken where it must be."""
        most = len(self.question.choices)
        if number and not 0 < int(number) <= most:
            self.show_notice(f"there is no choice {int(number)}; there are {most}")
            self._number = ""
            return
        self._number = number
        self.show_notice(f"{number}, enter: take it" if number and most > AT_ONCE else "")
        if number:
            self.query_one(OptionList).highlighted = int(number) - 1
            if most <= AT_ONCE:
                self._take(int(number) - 1)

    def _take(self, place: int) -> None:
        self.attempt(str(self.question.choices[place]["value"]))

    def _choice(self, place: int) -> Text:
        choices = self.question.choices
        number = f"{place + 1:>{len(str(len(choices)))}}"
        said, note = self._label(place), choices[place].get("description")
        if not note:
            return safe(f"{number}  {said}")
        widths = [cell_len(self._label(one)) for one in range(len(choices))]
        widest = max((width for width in widths if width <= WIDEST), default=0)
        return safe(f"{number}  {said}{' ' * (widest - cell_len(said))}  {note}")

    def _label(self, place: int) -> str:
        choice = self.question.choices[place]
        is_default = choice["value"] == self.question.default_value
        return one_line(f"{choice['label']}{' (counts if nobody answers)' if is_default else ''}")

    def _hint(self) -> str:
        asked, parts = self.question, []
        if asked.choices:
            many = len(asked.choices) > AT_ONCE
            parts.append("number, enter: choose" if many else f"1-{len(asked.choices)}: choose")
        if asked.freeform_allowed or not asked.choices:
            parts.append("enter: hand in   ctrl+j: new line")
            parts += ["tab: your own words"] if asked.choices else []
        return "   ".join([*parts, "esc: back"])
