"""Processes started by `draftsman up`, and their log."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from draftsman.log import LogEvent, parse_line

SUPERVISOR: Final = "draftsman_tui.cli.processes.supervisor"
"""The supervisor's logger."""
ARRIVALS: Final = frozenset(LogEvent)
"""Log events for a worker or leader that starts or stops."""
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
            if (record := parse_line(line)) is None:
                continue
            if record.level in BAD and record.logger == SUPERVISOR:
                self.last_error = record.text
                self.error_at = time.monotonic()
            elif record.event in ARRIVALS:
                changed = True
        return changed
