"""Dialog to answer a question: a numbered choice, or free text if allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import OptionList, Static

from draftsman.deliveries.question_text import visible_context
from draftsman.formats.invisible import one_line
from draftsman.questions.question import Question
from draftsman_tui.dashboard.changes.diff_dialog import DiffDialog
from draftsman_tui.dashboard.dialogs.base import Do, Heading, return_value, safe
from draftsman_tui.dashboard.questions.question_dialog import QuestionContext, QuestionDialog
from draftsman_tui.dashboard.widgets.inputs import MultilineInput
from draftsman_tui.dashboard.widgets.screen_lines import UndoLine

SINGLE_DIGIT: Final = 9
"""Choices that a single digit selects; with more, Enter completes the number."""

ROWS_BESIDE_CHOICES: Final = 18
"""Rows of the screen that a dialog with many choices needs for everything else."""

MAX_LABEL: Final = 48
"""Width of a label up to which descriptions are aligned."""


class AnswerDialog(QuestionDialog[Any]):
    """Submits the value of a choice or the text; returns a message with the outcome."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "diff", "Diff", show=False, id="question-diff"),
        Binding("alt+d", "diff", "Diff", show=False, priority=True),
    ]

    def __init__(
        self,
        question: Question,
        context: QuestionContext | None = None,
        do: Do[Any] = return_value,
        *,
        error: str = "",
        text: str = "",
        changes: str = "",
        read_diff: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        """Create the dialog; `changes` counts the changes whose diff `read_diff` returns."""
        super().__init__(question, context, do)
        self._read_diff = read_diff
        self._changes = changes
        self._error = error
        self._text = text
        self._number = ""

    @property
    def typed(self) -> str:
        inputs = self.query(MultilineInput)
        return inputs.first().text.strip() if inputs else ""

    def compose(self) -> ComposeResult:
        question = self.question
        numbered = len(question.choices) > SINGLE_DIGIT
        with Vertical(classes="box many" if numbered else "box"):
            yield Heading()
            with VerticalScroll(classes="body"):
                yield Static(safe(question.text))
                if question.context_snippet:
                    yield Static(safe(f"\n{visible_context(question)}"), classes="quiet")
                if self._changes:
                    yield Static(safe(f"\n{self._changes}; {self._diff_key}: diff"))
            if question.choices:
                yield OptionList(
                    *(self._choice(index) for index in range(len(question.choices))), classes="grow"
                )
            if question.freeform_allowed or not question.choices:
                yield MultilineInput(self._text, placeholder=question.free_answer)
            yield Static(classes="error")
            yield UndoLine()
            yield Static(classes="hint keys")

    def on_resize(self) -> None:
        """Give many choices the screen only if they need it."""
        count = len(self.question.choices)
        fits = count + ROWS_BESIDE_CHOICES <= self.app.size.height
        self.query_one(".box").set_class(count > SINGLE_DIGIT and not fits, "tall")

    @property
    def grown_rows(self) -> int:
        return len(self.question.choices)

    def on_mount(self) -> None:
        self.show_notice(self._error)
        text_input = self.query(MultilineInput) if self._text or not self.question.choices else None
        (text_input.first() if text_input else self.query_one(OptionList)).focus()

    @property
    def _diff_key(self) -> str:
        return "d" if self.question.choices else "alt+d"

    @work
    async def action_diff(self) -> None:
        """Show the diff; comments on it are added to the free text."""
        if self._read_diff is None or not (text := await self._read_diff()):
            return
        inputs = self.query(MultilineInput)
        dialog = DiffDialog(
            f"Diff of {self.question.name}", text, reviews=bool(inputs), source=self.context.source
        )
        comments = await self.app.push_screen_wait(dialog)
        if comments and inputs:
            typed = inputs.first()
            typed.text = "\n".join(filter(None, (typed.text.strip(), comments)))
            typed.focus()

    def on_key(self, event: events.Key) -> None:
        """Select a choice by its number, or yes and no by y and n, outside of the text input."""
        if isinstance(self.focused, MultilineInput) or not self.question.choices:
            return
        if (index := self._yes_or_no(event.character)) is not None:
            event.stop()
            self._submit_choice(index)
        elif event.character is not None and event.character.isdecimal():
            event.stop()
            single = len(self.question.choices) <= SINGLE_DIGIT
            self._type(event.character if single else self._number + event.character)
        elif event.key == "backspace" and self._number:
            event.stop()
            self._type(self._number[:-1])

    def on_option_list_option_highlighted(self) -> None:
        """Reset a typed number when the cursor moves to another choice."""
        index = self.query_one(OptionList).highlighted
        if self._number and index != int(self._number) - 1:
            self._number = ""

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self._submit_choice(event.option_index)

    def on_multiline_input_submitted(self, event: MultilineInput.Submitted) -> None:
        if event.text.strip():
            self.attempt(event.text.strip())

    def _type(self, number: str) -> None:
        """Highlight the choice of the typed number; submit it if one digit is enough."""
        count = len(self.question.choices)
        if number and not 0 < int(number) <= count:
            self.show_notice(f"invalid choice {int(number)}; choose 1 to {count}")
            self._number = ""
            return
        self._number = number
        chosen = f"enter: choose {number}, {self._label(int(number) - 1)}" if number else ""
        self.show_notice(chosen if count > SINGLE_DIGIT else "")
        if number:
            self.query_one(OptionList).highlighted = int(number) - 1
            if count <= SINGLE_DIGIT:
                self._submit_choice(int(number) - 1)

    def _yes_or_no(self, key: str | None) -> int | None:
        """Return the index of the choice that `y` or `n` selects: yes or no."""
        word = {"y": "yes", "n": "no"}.get(key or "")
        choices = [str(choice["value"]).casefold() for choice in self.question.choices]
        return choices.index(word) if word in choices else None

    def _submit_choice(self, index: int) -> None:
        self.attempt(str(self.question.choices[index]["value"]))

    def _choice(self, index: int) -> Text:
        choices = self.question.choices
        number = f"{index + 1:>{len(str(len(choices)))}}"
        label = self._label(index)
        description = choices[index].get("description")
        if not description:
            return safe(f"{number}  {label}")
        widths = [cell_len(self._label(nth)) for nth in range(len(choices))]
        widest = max((width for width in widths if width <= MAX_LABEL), default=0)
        return safe(f"{number}  {label}{' ' * (widest - cell_len(label))}  {description}")

    def _label(self, index: int) -> str:
        choice = self.question.choices[index]
        is_default = choice["value"] == self.question.default_value
        return one_line(f"{choice['label']}{' (default)' if is_default else ''}")

    def key_hints(self) -> str:
        question = self.question
        if self.is_typing:
            submit = "enter: submit   ctrl+j: new line"
            return self.hints(submit, "tab: choices") if question.choices else self.hints(submit)
        hints = []
        if question.choices:
            count = len(question.choices)
            keys = "1" if count == 1 else f"1-{count}"
            keys += ", y, n" if self._yes_or_no("y") is not None else ""
            hints.append("number, enter: choose" if count > SINGLE_DIGIT else f"{keys}: choose")
            if question.freeform_allowed:
                hints.append(f"tab: {question.free_answer}")
        return self.hints(*hints)
