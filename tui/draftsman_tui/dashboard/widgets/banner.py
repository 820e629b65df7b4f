"""The strip that says that the database is unreachable, and counts down to the next try."""

from __future__ import annotations

import time

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.common import times
from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.polling.messages import ConnectionLost


class Banner(Static):
    """Shown while nothing can be read."""

    _lost: ConnectionLost | None = None

    def on_mount(self) -> None:
        """Count."""
        self.set_interval(0.5, self._draw)

    def show(self, lost: ConnectionLost | None) -> None:
        """Say it, or, with None, say nothing more."""
        self._lost = lost
        self.set_class(lost is not None, "lost")
        self._draw()

    def _draw(self) -> None:
        if self._lost is None:
            return
        self.update(Text(words(self._lost, time.monotonic())))


def words(lost: ConnectionLost, now: float) -> str:
    """Return what it says at a time of the monotonic clock, what to do first."""
    parts = ["Database unreachable"]
    if lost.read_at is not None:
        parts.append(f"Showing data from {times.span(now - lost.read_at)} ago")
    left = round(lost.retry_at - now)
    parts.append(f"Retrying in {left} s" if left > 0 else "Retrying now")
    if lost.embedded:
        parts.append("If it was stopped, start it: draftsman db start")
    return ". ".join([*parts, one_line(lost.error)])
