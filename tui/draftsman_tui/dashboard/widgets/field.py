"""Form row: label, input and error."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import safe
from draftsman_tui.dashboard.requests.form import Field
from draftsman_tui.dashboard.widgets.autocomplete import Autocomplete
from draftsman_tui.dashboard.widgets.multiline_input import MultilineInput
from draftsman_tui.dashboard.widgets.segmented_choice import SegmentedChoice


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
