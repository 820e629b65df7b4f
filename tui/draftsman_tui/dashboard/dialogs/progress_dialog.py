"""Progress of a bulk operation; Escape stops it after the current job."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from draftsman_tui.dashboard.dialogs.base import Dialog, Heading


class ProgressDialog(Dialog[None]):
    """Progress display; the operation calls `show`, polls `stopped` and dismisses it."""

    def __init__(self, title: str, total: int) -> None:
        super().__init__()
        self.stopped = False
        self._title = title
        self._total = total
        self._text = f"0 of {total:,}"

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield Heading(self._title)
            yield Static(self._text, classes="body")
            yield Static("esc: stop after the current job", classes="hint")

    def show(self, done: int, refused: int) -> None:
        if not self.stopped:
            rejected = f", {refused:,} rejected" if refused else ""
            self._show_text(f"{done:,} of {self._total:,}{rejected}")

    def action_leave(self) -> None:
        self.stopped = True
        self._show_text("stopping …")

    def _show_text(self, text: str) -> None:
        self._text = text
        for line in self.query(".body").results(Static):
            line.update(text)
