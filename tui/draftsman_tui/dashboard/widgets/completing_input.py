"""Base of inputs with completions."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widgets import Input

from draftsman_tui.dashboard.completion import Completer


class CompletingInput(Input):
    """Input with completions of its text, which its container shows."""

    def __init__(
        self, text: str = "", completer: Completer = lambda _: (), *, placeholder: str = ""
    ) -> None:
        super().__init__(text, placeholder=placeholder, select_on_focus=False)
        self.completer = completer

    @property
    def completions(self) -> Sequence[str]:
        """Completed lines, best first."""
        return self.completer(self.value)

    def set_text(self, text: str) -> None:
        """Set the text, with the cursor at its end."""
        self.value = text
        self.cursor_position = len(text)
