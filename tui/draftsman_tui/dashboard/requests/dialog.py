"""New job form: four main fields, and the others under `more`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from draftsman.errors import DraftsmanError
from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.dialogs.base import Do, SubmitDialog, return_value
from draftsman_tui.dashboard.dialogs.simple_dialogs import ConfirmDialog
from draftsman_tui.dashboard.requests.form import BY_NAME, FIELDS, FormErrors, Typed
from draftsman_tui.dashboard.widgets.field import FieldRow
from draftsman_tui.dashboard.widgets.inputs import Autocomplete

OWN_TYPES: Final = object()
"""Returned by the form for a choice among the described types."""


class NewJobDialog(SubmitDialog[Any]):
    """Submits the form; shows each error beside its field, and focuses the first."""

    BOX = "box form"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "submit", "Submit", show=False, id="make-it"),
        Binding("ctrl+o", "more", "More", show=False, id="more-fields"),
        Binding("ctrl+t", "types", "Own types", show=False, id="own-types"),
    ]

    def __init__(
        self,
        title: str,
        typed: Typed,
        completions: Mapping[str, Sequence[str]],
        do: Do[Any] = return_value,
        hints: Mapping[str, str] | None = None,
        note: str = "",
    ) -> None:
        """Create the form; `note` is a line below its keys, about types of one's own."""
        keys = "enter: create   tab: next   ctrl+j: new line   esc: back"
        super().__init__(do, title, "\n".join(filter(None, (keys, note))))
        self._has_types = bool(note)
        self._hints = hints or {}
        self._initial = dict(typed)
        self._completions = completions
        self._unmodified: Typed = {}
        self._is_expanded = any(not BY_NAME[name].is_main for name in self._initial)

    @property
    def typed(self) -> dict[str, str]:
        return {row.field.name: row.text for row in self.query(FieldRow)}

    def body(self) -> ComposeResult:
        with VerticalScroll(can_focus=False, classes="grow"):
            yield from self._rows(is_main=True)
            yield Static("", classes="more-title")
            with Vertical(classes="more"):
                if self._is_expanded:
                    yield from self._rows(is_main=False)

    async def on_mount(self) -> None:
        await self._expand(self._is_expanded)
        self.query(FieldRow).first().focus_input()
        self._unmodified = self.typed

    def on_multiline_input_submitted(self) -> None:
        self.action_submit()

    def on_input_submitted(self) -> None:
        self.action_submit()

    def on_segmented_choice_submitted(self) -> None:
        self.action_submit()

    def action_submit(self) -> None:
        for row in self.query(FieldRow):
            row.show_error("")
        self.attempt(self.typed)

    async def action_more(self) -> None:
        """Show or hide the other fields."""
        await self._expand(not self._is_expanded)
        rows = [row for row in self.query(FieldRow) if row.field.is_main is not self._is_expanded]
        rows[0].focus_input()

    @on(events.Click, ".more-title")
    async def _toggle(self) -> None:
        await self._expand(not self._is_expanded)
        self.call_after_refresh(self.query_one(".more").scroll_visible)

    def action_go(self, by: int) -> None:
        """Accept a highlighted completion, and move on."""
        for line in self.query(Autocomplete):
            line.accept()
        super().action_go(by)

    def action_leave(self) -> None:
        """Close the form, after confirmation if it was edited."""
        if self.typed == self._unmodified:
            self.dismiss(None)
            return
        question = "Discard this job?"
        self.app.push_screen(ConfirmDialog(question, "Your input is not saved."), self._leave)

    def action_types(self) -> None:
        """Choose among the described types, if the form was not edited."""
        if not self._has_types:
            return
        if self.typed == self._unmodified:
            self.dismiss(OWN_TYPES)
        else:
            self.show_notice("submit this job first, or discard it: esc")

    def failed(self, error: DraftsmanError) -> None:
        """Show each problem beside its field, and focus the first."""
        problems = dict(error.problems) if isinstance(error, FormErrors) else {"": str(error)}
        self.show_notice(problems.pop("", ""))
        self.call_later(self._show_problems, problems)

    async def _show_problems(self, problems: Mapping[str, str]) -> None:
        if any(not field.is_main and field.name in problems for field in FIELDS):
            await self._expand(True)
        invalid = [row for row in self.query(FieldRow) if row.field.name in problems]
        for row in invalid:
            row.show_error(one_line(problems[row.field.name]))
        if invalid:
            self.call_after_refresh(invalid[0].focus_input)

    async def _expand(self, expanded: bool) -> None:
        """Show or hide the other fields; the form grows while they are shown.

        They are most of the form, and are created when they are first shown.
        """
        self._is_expanded = expanded
        title = self.query_one(".more-title", Static)
        title.update(f"{'▼' if expanded else '▶'} more  (ctrl+o)")
        other_fields = self.query_one(".more")
        if expanded and not other_fields.children:
            rows = self._rows(is_main=False)
            await other_fields.mount_all(rows)
            self._unmodified = {**self._unmodified, **{row.field.name: row.text for row in rows}}
        other_fields.display = expanded
        self.query_one(".form").set_class(expanded, "tall")

    def _leave(self, sure: bool | None) -> None:
        if sure:
            self.dismiss(None)

    def _rows(self, *, is_main: bool) -> list[FieldRow]:
        return [
            FieldRow(
                replace(field, hint=self._hints.get(field.name, field.hint)),
                self._initial.get(field.name, ""),
                self._completions.get(field.name, ()),
            )
            for field in FIELDS
            if field.is_main is is_main
        ]
