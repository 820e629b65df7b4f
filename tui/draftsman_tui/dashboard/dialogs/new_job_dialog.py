"""The form of a new job: four lines that count, the rest behind `more`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Collapsible, Static
from textual.widgets._collapsible import CollapsibleTitle

from draftsman.errors import DraftsmanError
from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.dialogs.base import Do, SubmitDialog, kept, safe
from draftsman_tui.dashboard.dialogs.confirm_dialog import ConfirmDialog
from draftsman_tui.dashboard.job_form import BY_NAME, FIELDS, Errors, Typed
from draftsman_tui.dashboard.widgets.autocomplete import Autocomplete
from draftsman_tui.dashboard.widgets.field import FieldRow


class NewJobDialog(SubmitDialog[Any]):
    """Tries what is typed; an error stands beside its field, and the cursor goes there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "submit", "Make it", show=False, id="make-it"),
        Binding("ctrl+o", "more", "More", show=False, id="more-fields"),
    ]

    def __init__(
        self,
        title: str,
        typed: Typed,
        known: Mapping[str, Sequence[str]],
        do: Do[Any] = kept,
        hints: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(do)
        self._hints = hints or {}
        self._title = title
        self._given = dict(typed)
        self._known = known
        self._at_first: Typed = {}

    @property
    def typed(self) -> dict[str, str]:
        """What stands in each field."""
        return {row.field.name: row.text for row in self.query(FieldRow)}

    def compose(self) -> ComposeResult:
        """Show the fields; the rest is open where something stands in it."""
        hidden = not any(BY_NAME[name].more for name in self._given)
        with Vertical(classes="box form" if hidden else "box form tall"):
            yield Static(safe(self._title), classes="heading")
            with VerticalScroll(can_focus=False, classes="grow"):
                yield from self._rows(more=False)
                with Collapsible(title="more  (ctrl+o)", collapsed=hidden):
                    yield from self._rows(more=True)
            yield Static("", classes="error")
            yield Static(
                "enter: make it   tab: next   ctrl+j: new line   esc: back", classes="hint"
            )

    def on_mount(self) -> None:
        """Begin with what is to be done."""
        self.query_one(CollapsibleTitle).can_focus = False  # tab goes from field to field
        self.query(FieldRow).first().focus_input()
        self._at_first = self.typed

    def on_multiline_input_submitted(self) -> None:
        """Make it."""
        self.action_submit()

    def on_input_submitted(self) -> None:
        """Make it."""
        self.action_submit()

    def on_segmented_choice_submitted(self) -> None:
        """Make it."""
        self.action_submit()

    def action_submit(self) -> None:
        """Make it."""
        for row in self.query(FieldRow):
            row.wrong("")
        self.attempt(self.typed)

    def action_more(self) -> None:
        """Show the other fields, or hide them."""
        more = self.query_one(Collapsible)
        more.collapsed = not more.collapsed
        rows = [row for row in self.query(FieldRow) if row.field.more != more.collapsed]
        rows[0].focus_input()

    @on(Collapsible.Toggled)
    def _toggled(self, event: Collapsible.Toggled) -> None:
        """Take more room for more fields."""
        self.query_one(".form").set_class(not event.collapsible.collapsed, "tall")

    def action_go(self, by: int) -> None:
        """Take what is chosen below a line, and go on."""
        for line in self.query(Autocomplete):
            line.take()
        super().action_go(by)

    def action_leave(self) -> None:
        """Leave, after a question where something was typed."""
        if self.typed == self._at_first:
            self.dismiss(None)
            return
        question = "Leave without making a job?"
        self.app.push_screen(ConfirmDialog(question, "What you typed is lost."), self._leave)

    def failed(self, error: DraftsmanError) -> None:
        """Say beside each field what is wrong with it, and go to the first."""
        beside = dict(error.beside) if isinstance(error, Errors) else {"": str(error)}
        self.show_notice(beside.pop("", ""))
        wrong = [row for row in self.query(FieldRow) if row.field.name in beside]
        for row in wrong:
            row.wrong(one_line(beside[row.field.name]))
        if any(row.field.more for row in wrong):
            self.query_one(Collapsible).collapsed = False
        if wrong:
            self.call_after_refresh(wrong[0].focus_input)

    def _leave(self, sure: bool | None) -> None:
        if sure:
            self.dismiss(None)

    def _rows(self, *, more: bool) -> list[FieldRow]:
        return [
            FieldRow(
                replace(field, hint=self._hints.get(field.name, field.hint)),
                self._given.get(field.name, ""),
                self._known.get(field.name, ()),
            )
            for field in FIELDS
            if field.more is more
        ]
