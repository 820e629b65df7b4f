"""Form of the parameters of a template or a job type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from draftsman.errors import DraftsmanError, InvalidParameters
from draftsman.formats.invisible import one_line
from draftsman.json_schemas.form_fields import (
    FormField,
    Input,
    choice_label,
    entered_values,
    form_fields,
    option_value,
)
from draftsman.json_schemas.parameter_schema import ParameterSchema, placeholder
from draftsman_tui.dashboard.dialogs.base import Do, SubmitDialog
from draftsman_tui.dashboard.requests.form import Field
from draftsman_tui.dashboard.widgets.field import FieldRow

MAX_LISTED: Final = 60
"""Characters of choices that are beside each other."""
NOT_SET: Final = "not set"


class ParametersDialog(SubmitDialog[Any]):
    """Asks for a value of each parameter; a field that is left empty has its default."""

    BOX = "box form"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "submit", "Submit", show=False, id="run-it"),
    ]

    def __init__(self, title: str, inputs: ParameterSchema, do: Do[Any]) -> None:
        super().__init__(do, title, "enter: create   tab: next   esc: back")
        self._fields = form_fields(inputs, _can_list)

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False, classes="grow"):
            for field in self._fields:
                yield FieldRow(_row(field), _initial(field))

    def on_mount(self) -> None:
        self.query(FieldRow).first().focus_input()

    def on_input_submitted(self) -> None:
        self.action_submit()

    def on_segmented_choice_submitted(self) -> None:
        self.action_submit()

    def action_submit(self) -> None:
        """Submit the values that are not empty."""
        rows = self.query(FieldRow)
        for row in rows:
            row.show_error("")
        entered = {
            field.id: _words(field).get(row.text, row.text)
            for field, row in zip(self._fields, rows, strict=True)
        }
        self.attempt(entered_values(self._fields, entered))

    def failed(self, error: DraftsmanError) -> None:
        """Show each problem beside its field, and focus the first."""
        problems = error.problems if isinstance(error, InvalidParameters) else {}
        wrong = [row for row in self.query(FieldRow) if row.field.name in problems]
        for row in wrong:
            row.show_error(one_line(problems[row.field.name]))
        self.show_notice("" if wrong else str(error))
        if wrong:
            wrong[0].focus_input()


def _can_list(labels: list[str]) -> bool:
    return sum(map(len, labels)) <= MAX_LISTED


def _words(field: FormField) -> Mapping[str, str]:
    """Return what is entered by each word of a choice, which is the only way to enter it."""
    unset = {} if field.required or field.has_default else {NOT_SET: ""}
    if field.input is Input.CHOICE:
        labels = map(choice_label, field.choices)
        return unset | {label: option_value(index) for index, label in enumerate(labels)}
    if field.input is Input.BOOLEAN:
        return unset | {"yes": "true", "no": "false"}
    return {}


def _row(field: FormField) -> Field:
    hint = field.hint or placeholder(field.schema)
    if field.required:
        hint += ", required"
    choices = tuple(_words(field))
    return Field(field.name, field.name, hint, lambda text: {}, is_main=True, choices=choices)


def _initial(field: FormField) -> str:
    entered = field.text(field.schema.get("default"))
    by_text = {text: word for word, text in _words(field).items()}
    return by_text.get(entered, entered)
