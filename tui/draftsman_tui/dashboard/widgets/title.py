"""The line above the body: what it shows, how much of it, and how it is narrowed."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.common.output import one_line


class Title(Static):
    """One line."""

    def show(self, *parts: str, read_only: bool) -> None:
        """Say it, and whether nothing can be changed."""
        said = [*parts, "read-only"] if read_only else parts
        self.update(
            Text(one_line(" · ".join(said)), no_wrap=True, overflow="ellipsis"), layout=False
        )
