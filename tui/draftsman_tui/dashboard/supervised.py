"""What `up` started and its dashboard looks after besides: the processes, and their log."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from draftsman.log import LogEvent

SUPERVISOR: Final = "draftsman_tui.cli.process.supervisor"
"""The logger of what keeps the processes running."""
ARRIVALS: Final = frozenset(LogEvent)
"""Events of a worker or a leader that comes or goes."""
_EVENT: Final = re.compile(r" event=(\w+)(?= |$)")
BAD: Final = ("warning", "error", "critical")


@dataclass(slots=True)
class SupervisedProcesses:
    """The supervisor's pid, the file that all of them log to, and what went wrong last."""

    pid: int
    log: Path
    last_error: str = ""
    at: float = 0.0
    """When the trouble was heard of, by the monotonic clock."""

    def read_log(self, lines: Iterable[str]) -> bool:
        """Note what the supervisor says of a process that died.

        Returns whether a worker or a leader came or went, of which no event tells.
        """
        changed = False
        for line in lines:
            match line.split(" ", 3):
                case [_, level, logger, text] if level in BAD and logger == SUPERVISOR:
                    self.last_error, self.at = text, time.monotonic()
                case [_, _, _, text] if ARRIVALS.intersection(_EVENT.findall(text)):
                    changed = True
        return changed
