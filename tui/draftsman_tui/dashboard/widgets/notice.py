"""The line that says that a process which `up` started has died."""

from __future__ import annotations

import time
from typing import Final

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.supervised import SupervisedProcesses

SHOWN: Final = 60.0
"""Seconds after which nobody needs to hear of it any more; the log still has it."""


class Notice(Static):
    """Shown for a while after something went wrong."""

    def show(self, started: SupervisedProcesses) -> None:
        """Say what, and how long ago; or nothing."""
        ago = time.monotonic() - started.at
        wanted = bool(started.last_error) and ago < SHOWN
        self.set_class(wanted, "wanted")
        if wanted:
            text = f"{one_line(started.last_error)} · {ago:.0f} s ago · :processes shows more"
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))
