"""The line that says that the database is away, and counts down to the next try."""

from __future__ import annotations

import time

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.cli.output import one_line
from draftsman_tui.dashboard.messages import Lost


class Banner(Static):
    """Shown while nothing can be read."""

    _lost: Lost | None = None

    def on_mount(self) -> None:
        """Count."""
        self.set_interval(0.5, self._draw)

    def show(self, lost: Lost | None) -> None:
        """Say it, or, with None, say nothing more."""
        self._lost = lost
        self.set_class(lost is not None, "lost")
        self._draw()

    def _draw(self) -> None:
        if self._lost is None:
            return
        left = max(0, round(self._lost.retry_at - time.monotonic()))
        when = f"trying again in {left} s" if left else "trying again"
        self.update(Text(f"{one_line(self._lost.error)}; what is shown is old; {when}"))
