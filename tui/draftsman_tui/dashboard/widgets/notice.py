"""Notice about a failed process of `draftsman up`."""

from __future__ import annotations

import time
from typing import Final

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.common.output import one_line
from draftsman_tui.dashboard.supervised import SupervisedProcesses

SHOWN: Final = 60.0
"""Seconds to show an error; the log keeps it."""


class Notice(Static):
    """Shown for a while after an error."""

    def show(self, processes: SupervisedProcesses) -> None:
        """Show a recent error with its age, or hide the notice."""
        age = time.monotonic() - processes.error_at
        is_visible = bool(processes.last_error) and age < SHOWN
        self.set_class(is_visible, "visible")
        if is_visible:
            text = f"{one_line(processes.last_error)} · {age:.0f} s ago · :processes shows the log"
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))
