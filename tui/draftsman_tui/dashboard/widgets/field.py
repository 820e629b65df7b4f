"""One line of a form: what it is called, what is typed, what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Static

from draftsman_tui.dashboard.dialogs.base import safe
from draftsman_tui.dashboard.job_form import Field
from draftsman_tui.dashboard.widgets.autocomplete import Autocomplete
from draftsman_tui.dashboard.widgets.multiline_input import MultilineInput
from draftsman_tui.dashboard.widgets.segmented_choice import SegmentedChoice


class FieldRow(Vertical):
    """Its text, whatever it is typed in."""

    def __init__(self, field: Field, text: str, known: Sequence[str] = ()) -> None:
        super().__init__()
        self.field = field
        self._control = _control(field, text, known)

    @property
    def text(self) -> str:
        """What stands there."""
        match self._control:
            case MultilineInput() as words:
                return words.text
            case Autocomplete() | Input() | SegmentedChoice() as line:
                return line.value
        return ""

    def compose(self) -> ComposeResult:
        """Put the name before it, and what is wrong below."""
        with Horizontal():
            yield Static(self.field.label, classes="label")
            yield self._control
        yield Static("", classes="wrong")

    def wrong(self, text: str) -> None:
        """Say what is wrong; nothing with ''."""
        line = self.query_one(".wrong", Static)
        if not text and not line.has_class("told"):
            return
        line.update(safe(f"▲ {text}" if text else ""))
        line.set_class(bool(text), "told")

    def focus_input(self) -> None:
        """Let the cursor be here."""
        control = self._control
        (control.line if isinstance(control, Autocomplete) else control).focus()


def _control(field: Field, text: str, known: Sequence[str]) -> Widget:
    if field.either:
        return SegmentedChoice(field.either, text or None)
    if field.name == "text":
        return MultilineInput(text, placeholder=field.hint)
    if known:
        return Autocomplete(text, known, placeholder=field.hint, several=field.several)
    return Input(text, placeholder=field.hint, select_on_focus=False)
