"""Decides a gate with what it is about in view: the text, the action, the changes so far."""

from __future__ import annotations

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, Static

from draftsman.domain.question import Question
from draftsman_tui.cli import times
from draftsman_tui.dashboard.screens.dialog import Dialog, diff_text, safe


class Decide(Dialog[tuple[bool, str]]):
    """Returns whether it is approved, and why; the keys are far apart, and Enter is none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a,y", "say(True)", "Approve", id="approve-it"),
        Binding("ctrl+d,n", "say(False)", "Deny", id="deny-it"),
        Binding("r", "reason", "Reason", id="reason"),
    ]

    def __init__(
        self,
        question: Question,
        who: str,
        diff: str | None,
        decision: bool | None = None,
        reason: str = "",
    ) -> None:
        super().__init__()
        self._question = question
        self._who = who
        self._diff = diff
        self._decision = decision
        self._reason = reason

    def compose(self) -> ComposeResult:
        """Show all of it."""
        asked = self._question
        until = f", expires {times.left(asked.expires_at)}" if asked.expires_at else ""
        with Vertical(classes="box"):
            yield Static(safe(f"{asked.name} is decided by {self._who}{until}"), classes="heading")
            with VerticalScroll(classes="body"):
                yield Static(safe(asked.text))
                if asked.context_snippet:
                    yield Static(safe(f"\n{asked.context_snippet}", "dim"))
                if asked.action:
                    yield Static(safe(f"\nallows: {json.dumps(asked.action, ensure_ascii=False)}"))
            with VerticalScroll(classes="diff"):
                none = safe("the job has left no changes so far", "dim")
                yield Static(diff_text(self._diff) if self._diff else none)
            yield Input(self._reason, placeholder="reason, kept with the decision")
            yield Static(self._keys(), classes="hint")

    def on_mount(self) -> None:
        """Begin with the changes, not with the line for the reason."""
        self.query_one(".diff").focus()

    def action_say(self, approved: bool) -> None:
        """Return the decision."""
        if self._decision is None or approved is self._decision:
            self.dismiss((approved, self.query_one(Input).value.strip()))

    def action_reason(self) -> None:
        """Write why."""
        self.query_one(Input).focus()

    def on_input_submitted(self) -> None:
        """Go back to where the keys decide."""
        self.query_one(".diff").focus()

    def _keys(self) -> str:
        keys = {True: "y: approve", False: "n: deny"}
        offered = keys.values() if self._decision is None else [keys[self._decision]]
        return "   ".join([*offered, "r: reason", "esc: back, nothing is decided"])
