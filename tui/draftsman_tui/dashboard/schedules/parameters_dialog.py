"""Form of the parameters of a template or a job type."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from draftsman.json_schemas.parameter_schema import ParameterSchema, placeholder, text_choices
from draftsman_tui.dashboard.dialogs.base import Do, SubmitDialog
from draftsman_tui.dashboard.requests.form import Field
from draftsman_tui.dashboard.widgets.field import FieldRow


class ParametersDialog(SubmitDialog[Any]):
    """Asks for a value of each parameter; a field that is left empty has its default."""

    BOX = "box form"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "submit", "Submit", show=False, id="run-it"),
    ]

    def __init__(self, title: str, inputs: ParameterSchema, do: Do[Any]) -> None:
        super().__init__(do, title, "enter: create   tab: next   esc: back")
        self._inputs = inputs

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False, classes="grow"):
            for name, schema in self._inputs.properties.items():
                yield FieldRow(self._field(name, schema), _initial(schema))

    def on_mount(self) -> None:
        self.query(FieldRow).first().focus_input()

    def on_input_submitted(self) -> None:
        self.action_submit()

    def on_segmented_choice_submitted(self) -> None:
        self.action_submit()

    def action_submit(self) -> None:
        """Submit the values that are not empty."""
        typed = {row.field.name: row.text for row in self.query(FieldRow)}
        self.attempt({name: text for name, text in typed.items() if text})

    def _field(self, name: str, schema: dict[str, Any]) -> Field:
        hint = str(schema.get("description", placeholder(schema)))
        if name in self._inputs.required:
            hint += ", required"
        choices = text_choices(schema)
        return Field(name, name, hint, lambda text: {name: text}, is_main=True, choices=choices)


def _initial(schema: dict[str, Any]) -> str:
    default = schema.get("default")
    if default is None:
        return ""
    return default if isinstance(default, str) else json.dumps(default)
