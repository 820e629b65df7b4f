"""Lines below the title: a lost database connection, a failed process, and actions to undo."""

from __future__ import annotations

import time
from typing import Final

from rich.text import Text
from textual.widgets import Static

from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman_tui.dashboard.frame.messages import ConnectionLost
from draftsman_tui.dashboard.worker.supervised import SupervisedProcesses

SHOWN: Final = 60.0
"""Seconds to show an error of a process; the log keeps it."""


class Banner(Static):
    """Shown while the database is unreachable, with a countdown to the next attempt."""

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
    sentences = ["Database unreachable"]
    if lost.read_at is not None:
        sentences.append(f"Showing data from {times.span(now - lost.read_at)} ago")
    seconds = round(lost.retry_at - now)
    sentences.append(f"Retrying in {seconds} s" if seconds > 0 else "Retrying now")
    if lost.embedded:
        sentences.append("To start a stopped server: draftsman db start")
    return f"{'. '.join(sentences)}. ({one_line(lost.error)})"


class Notice(Static):
    """Shown for a while after an error of a process of `draftsman up`."""

    def show(self, processes: SupervisedProcesses) -> None:
        """Show a recent error with its age, or hide the notice."""
        age = time.monotonic() - processes.error_at
        is_visible = bool(processes.last_error) and age < SHOWN
        self.set_class(is_visible, "visible")
        if is_visible:
            error = one_line(processes.last_error)
            text = f"{error} · {times.span(age)} ago · :processes shows the log"
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))


class UndoLine(Static):
    """Shown while a decision is in its undo window, with the time that is left."""

    def show(self, text: str) -> None:
        """Show the line; "" hides it."""
        self.set_class(bool(text), "visible")
        if text:
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))
