"""Decides a gate with what it is about in view: the text, the action, the changes so far."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, OptionList, Static

from draftsman.domain.messages.action_text import action_text
from draftsman_tui.dashboard.dialogs.base import safe
from draftsman_tui.dashboard.dialogs.question_dialog import QuestionDialog
from draftsman_tui.dashboard.widgets.diff_view import DiffView


class ApprovalDialog(QuestionDialog[Any]):
    """Tries (whether it is approved, and why); the keys are far apart, and Enter is none."""

    VERB = "is decided by"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a,y", "say(True)", "Approve", id="approve-it"),
        Binding("ctrl+d,n", "say(False)", "Deny", id="deny-it"),
        Binding("r", "reason", "Reason", id="reason"),
    ]

    def __init__(
        self,
        *asked: Any,
        diff: str | None = None,
        decision: bool | None = None,
        reason: str = "",
        **how: Any,
    ) -> None:
        super().__init__(*asked, **how)
        self._patch = DiffView(diff, classes="grow") if diff else None
        self._without = "diff not available" if diff is None else "no changes so far"
        self._decision = decision
        self._reason = reason

    @property
    def typed(self) -> str:
        """The reason."""
        return self.query_one(Input).value.strip()

    def compose(self) -> ComposeResult:
        """Show all of it."""
        asked = self.question
        with Vertical(classes="box tall" if self._patch else "box"):
            yield Static(classes="heading")
            with VerticalScroll(classes="body", can_focus=not self._patch):
                yield Static(safe(asked.text))
                if asked.context_snippet:
                    yield Static(safe(f"\n{asked.context_snippet}", "dim"))
                if asked.action:
                    yield Static(safe(f"\nif approved: {action_text(asked.action)}"))
            if self._patch is None:
                yield Static(safe(self._without, "dim"), classes="hint")
            else:
                if len(self._patch.files) > 1:
                    names = (safe(name) for _, name in self._patch.files)
                    yield OptionList(*names, classes="files")
                yield self._patch
            yield Input(self._reason, placeholder="reason, kept with the decision")
            yield Static(classes="error")
            yield Static(self._keys(), classes="hint")

    def on_mount(self) -> None:
        """Begin with the changes, not with the line for the reason."""
        self._read()

    def action_say(self, approved: bool) -> None:
        """Decide."""
        if self._decision is None or approved is self._decision:
            self.attempt((approved, self.typed))

    def action_reason(self) -> None:
        """Write why."""
        self.query_one(Input).focus()

    def on_input_submitted(self) -> None:
        """Go back to where the keys decide."""
        self._read()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Show the file, which the keys scroll."""
        if self._patch is not None:
            self._patch.go_to(event.option_index)
            self._patch.focus()

    def _read(self) -> None:
        (self._patch or self.query_one(".body")).focus()

    def _keys(self) -> str:
        keys = {True: "y: approve", False: "n: deny"}
        offered = list(keys.values()) if self._decision is None else [keys[self._decision]]
        if self._patch is not None:
            files = "   [ ]: file, tab: files" if len(self._patch.files) > 1 else ""
            offered.append(f"j k: read{files}")
        return "   ".join([*offered, "r: reason", "esc: back"])
