"""Says how far something is that is done to many rows; Escape stops it between two."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, safe


class ProgressDialog(Dialog[None]):
    """Whoever does it calls `show`, looks at `stopped`, and dismisses it."""

    def __init__(self, title: str, many: int) -> None:
        super().__init__()
        self.stopped = False
        self._title = title
        self._many = many
        self._text = f"0 of {many:,}"

    def compose(self) -> ComposeResult:
        """Show it."""
        with Vertical(classes="box"):
            yield Static(safe(self._title), classes="heading")
            yield Static(self._text, classes="body")
            yield Static("esc: stop after this one", classes="hint")

    def show(self, done: int, refused: int) -> None:
        """Say how far it is."""
        if not self.stopped:
            no = f", {refused:,} refused" if refused else ""
            self._say(f"{done:,} of {self._many:,}{no}")

    def action_leave(self) -> None:
        """Stop."""
        self.stopped = True
        self._say("stopping …")

    def _say(self, text: str) -> None:
        self._text = text
        for line in self.query(".body").results(Static):
            line.update(text)
