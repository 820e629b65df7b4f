"""Banner for a lost database connection, with a countdown to the next attempt."""

from __future__ import annotations

import time

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.common import times
from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.polling.messages import ConnectionLost


class Banner(Static):
    """Shown while the database is unreachable."""

    _lost: ConnectionLost | None = None

    def on_mount(self) -> None:
        self.set_interval(0.5, self._draw)

    def show(self, lost: ConnectionLost | None) -> None:
        """Show the banner, or hide it with None."""
        self._lost = lost
        self.set_class(lost is not None, "lost")
        self._draw()

    def _draw(self) -> None:
        if self._lost is None:
            return
        self.update(Text(banner_text(self._lost, time.monotonic())))


def banner_text(lost: ConnectionLost, now: float) -> str:
    """Return the text for a monotonic time."""
    parts = ["Database unreachable"]
    if lost.read_at is not None:
        parts.append(f"Showing data from {times.span(now - lost.read_at)} ago")
    left = round(lost.retry_at - now)
    parts.append(f"Retrying in {left} s" if left > 0 else "Retrying now")
    if lost.embedded:
        parts.append("To start a stopped server: draftsman db start")
    return ". ".join([*parts, one_line(lost.error)])
