"""Asks, before the dashboard of `up` is left, what becomes of the processes.

Enter alone goes on: the harmless choice is the first one.
"""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe

CHOICES: Final = {
    "": "Go on looking",
    "leave": "Leave it running, without a dashboard",
    "stop": "Stop all; what runs goes on later from its last checkpoint",
}
KEYS: Final = "gls"


class QuitDialog(Dialog[str]):
    """Returns `stop` or `leave`; None: the dashboard goes on. Another Ctrl-C stops all."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,ctrl+c", "choose('stop')", "Stop all", id="stop-all"),
        Binding("l", "choose('leave')", "Leave it running", id="leave-running"),
        Binding("g", "choose('')", "Go on", id="go-on"),
    ]

    def compose(self) -> ComposeResult:
        """Show what can be done."""
        with Vertical(classes="box"):
            yield Static("Stop all, leave it running, or go on?", classes="heading")
            choices = zip(KEYS, CHOICES.values(), strict=True)
            yield OptionList(*(safe(f"{key}  {text}") for key, text in choices))
            yield Static(
                "g, esc, enter: go on   l: leave it running   s, ctrl+c: stop all", classes="hint"
            )

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take a choice of the list."""
        self.action_choose(list(CHOICES)[event.option_index])

    def action_choose(self, choice: str) -> None:
        """Return it."""
        self.dismiss(choice or None)
