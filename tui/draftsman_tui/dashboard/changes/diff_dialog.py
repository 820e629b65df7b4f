"""Dialog with the diff of a job or of a question."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from draftsman_tui.dashboard.changes.diff_pane import DiffPane
from draftsman_tui.dashboard.dialogs.base import Dialog


class DiffDialog(Dialog[str]):
    """A diff; with `reviews` it returns the comments on it as a text."""

    BOX = "box tall wide"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "leave", "Back", show=False)]

    def __init__(
        self, title: str, text: str, *, reviews: bool = False, source: str | None = None
    ) -> None:
        keys = "enter - : fold   [ ] : file   n N : hunk   /: search   | : sides   e: editor"
        review_keys = "   m: comment   v: accept the file" if reviews else ""
        super().__init__(title, f"{keys}{review_keys}   esc: back")
        self._pane = DiffPane(text, reviews=reviews, searches=True, classes="grow")
        self._pane.source = source

    def body(self) -> ComposeResult:
        yield self._pane

    def on_mount(self) -> None:
        self._pane.focus()

    def action_leave(self) -> None:
        """Close the line of a comment, or return the comments."""
        if not self._pane.close_line():
            self.dismiss(self._pane.view.review_text() or None)
