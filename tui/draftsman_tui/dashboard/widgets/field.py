"""Form row: label, input and error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import safe
from draftsman_tui.dashboard.requests.form import Field
from draftsman_tui.dashboard.widgets.inputs import Autocomplete, MultilineInput


class SegmentedChoice(Static, can_focus=True):
    """Choice whose selection is shown by a symbol, not only by color."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", "Previous", show=False),
        Binding("right,space", "turn(1)", "Next", show=False),
        Binding("enter", "submit", "Submit", show=False),
    ]

    class Submitted(Message):
        """The form should be submitted."""

    def __init__(self, words: Sequence[str], chosen: str | None = None) -> None:
        super().__init__()
        self._words = tuple(words)
        self._index = self._words.index(chosen) if chosen in self._words else 0

    @property
    def value(self) -> str:
        """The selected option."""
        return self._words[self._index]

    def on_mount(self) -> None:
        self._draw()

    def action_turn(self, by: int) -> None:
        """Select the next option, or the previous for -1."""
        self._index = (self._index + by) % len(self._words)
        self._draw()

    def action_submit(self) -> None:
        self.post_message(self.Submitted())

    def on_click(self, event: events.Click) -> None:
        """Select the option under the mouse."""
        end = 0
        for index, word in enumerate(self._words):
            end += len(word) + 4
            if event.x < end:
                self._index = index
                self._draw()
                return

    def _draw(self) -> None:
        line = Text(no_wrap=True)
        for index, word in enumerate(self._words):
            is_selected = index == self._index
            line.append(f"{'●' if is_selected else '○'} {word}  ", "bold" if is_selected else "")
        self.update(line)


class FieldRow(Vertical):
    """A form field with the input widget for its type."""

    def __init__(self, field: Field, text: str, completions: Sequence[str] = ()) -> None:
        super().__init__()
        self.field = field
        self._control = _control(field, text, completions)

    @property
    def text(self) -> str:
        """The text of the input."""
        match self._control:
            case MultilineInput() as text_area:
                return text_area.text
            case Autocomplete() | Input() | SegmentedChoice() as control:
                return control.value
        return ""

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(self.field.label, classes="label")
            yield self._control
        yield Static("", classes="wrong")

    def show_error(self, text: str) -> None:
        """Show an error; '' clears it."""
        line = self.query_one(".wrong", Static)
        if not text and not line.has_class("visible"):
            return
        line.update(safe(f"▲ {text}" if text else ""))
        line.set_class(bool(text), "visible")

    def focus_input(self) -> None:
        """Focus the input."""
        control = self._control
        (control.line if isinstance(control, Autocomplete) else control).focus()


def _control(field: Field, text: str, completions: Sequence[str]) -> Widget:
    if field.choices:
        return SegmentedChoice(field.choices, text or None)
    if field.name == "text":
        return MultilineInput(text, placeholder=field.hint)
    if completions:
        return Autocomplete(text, completions, placeholder=field.hint, multiple=field.multiple)
    return Input(text, placeholder=field.hint, select_on_focus=False)
