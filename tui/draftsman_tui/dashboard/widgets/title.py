"""Title line: view, row count and filter."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from draftsman.formats.invisible import one_line


class Title(Static):
    """Title line of a screen."""

    def show(self, *facts: str, read_only: bool) -> None:
        """Show facts, and the read-only mode."""
        texts = [*facts, "read-only"] if read_only else facts
        self.update(
            Text(one_line(" · ".join(texts)), no_wrap=True, overflow="ellipsis"), layout=False
        )
