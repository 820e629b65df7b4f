"""Dialog before quitting the dashboard of `draftsman up`.

Enter leaves the processes running: it is preselected, since it ends no run.
"""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading, safe

CHOICES: Final = {
    "leave": "Leave the processes running, without a dashboard",
    "stop": "Stop all processes; running jobs resume later from their last checkpoint",
    "": "Stay in the dashboard",
}
KEYS: Final = "lsg"


class QuitDialog(Dialog[str]):
    """Returns `stop`, `leave`, or None to stay. A second Ctrl-C stops all."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,ctrl+c", "choose('stop')", "Stop all", id="stop-all"),
        Binding("l", "choose('leave')", "Leave running", id="leave-running"),
        Binding("g", "choose('')", "Stay", id="go-on"),
    ]

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading("Leave the processes running, stop them all, or stay?")
            choices = zip(KEYS, CHOICES.values(), strict=True)
            yield OptionList(*(safe(f"{key}  {text}") for key, text in choices))
            yield Static(
                "l, enter: leave running   s, ctrl+c: stop all   g, esc: stay", classes="hint"
            )

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_choose(list(CHOICES)[event.option_index])

    def action_choose(self, choice: str) -> None:
        """Dismiss with the choice."""
        self.dismiss(choice or None)
