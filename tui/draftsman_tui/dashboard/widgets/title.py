"""Title line: view, row count and filter."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.terminal.output import one_line


class Title(Static):
    """Title line of a screen."""

    def show(self, *parts: str, read_only: bool) -> None:
        """Show the parts, and the read-only mode."""
        shown = [*parts, "read-only"] if read_only else parts
        self.update(
            Text(one_line(" · ".join(shown)), no_wrap=True, overflow="ellipsis"), layout=False
        )
