"""Processes started by `draftsman up`, and their log."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from draftsman.log import LogEvent

SUPERVISOR: Final = "draftsman_tui.cli.processes.supervisor"
"""The supervisor's logger."""
ARRIVALS: Final = frozenset(LogEvent)
"""Log events for a worker or leader that starts or stops."""
_EVENT: Final = re.compile(r" event=(\w+)(?= |$)")
BAD: Final = ("warning", "error", "critical")


@dataclass(slots=True)
class SupervisedProcesses:
    """Supervisor pid, shared log file, and the last error."""

    pid: int
    log: Path
    last_error: str = ""
    error_at: float = 0.0
    """Time of the last error, by the monotonic clock."""

    def read_log(self, lines: Iterable[str]) -> bool:
        """Record the supervisor's errors from new log lines.

        Returns whether a worker or leader started or stopped, which no database event reports.
        """
        changed = False
        for line in lines:
            match line.split(" ", 3):
                case [_, level, logger, text] if level in BAD and logger == SUPERVISOR:
                    self.last_error = text
                    self.error_at = time.monotonic()
                case [_, _, _, text] if ARRIVALS.intersection(_EVENT.findall(text)):
                    changed = True
        return changed
