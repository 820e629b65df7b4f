"""Chooses one of several by its name."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import OptionList, Static

from draftsman_tui.dashboard.screens.dialog import Dialog, safe


class Pick(Dialog[str]):
    """Returns the name; each stands beside what it is."""

    def __init__(self, title: str, offered: Mapping[str, str], verb: str) -> None:
        super().__init__()
        self._title = title
        self._offered = offered
        self._verb = verb

    def compose(self) -> ComposeResult:
        """List them."""
        wide = max(map(len, self._offered), default=0)
        with Vertical(classes="box"):
            yield Static(safe(self._title), classes="heading")
            yield OptionList(
                *(
                    Text.assemble((f"{name:<{wide}}  ", "bold"), safe(about))
                    for name, about in self._offered.items()
                )
            )
            yield Static(f"enter: {self._verb}   esc: back", classes="hint")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return its name."""
        self.dismiss(list(self._offered)[event.option_index])
