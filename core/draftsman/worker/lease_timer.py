"""The timer that ends the runs of a worker with their leases, without the database.

A heartbeat may wait for a network that drops packets, for longer than a lease. Another worker
rescues the jobs then, so the runs must have stopped:

    sent ───────────────────────── sent + lease - margin ────── sent + lease
    the last confirmed heartbeat    handlers are canceled        the process exits if one goes on

Times count from the sending of the heartbeat, which is before the database stored it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final

from draftsman.processes import clock
from draftsman.processes.lifecycle import StopSignal
from draftsman.worker.watchdog import EXIT_CODE
from draftsman.worker.worker import Worker

TICK: Final = 1.0
"""Maximum seconds between two checks."""
CHECKS: Final = 50
"""Minimum number of checks during a lease."""
EXIT_CHECKS: Final = 3
"""Checks before the end of a lease at which the process exits, which takes time, too."""
_log = logging.getLogger(__name__)


class LeaseTimer:
    """Ends runs whose lease nobody renewed; `end` is called with EXIT_CODE if one goes on."""

    def __init__(self, worker: Worker, lease: float, end: Callable[[int], None] = os._exit) -> None:
        """`lease` is in seconds."""
        self.stop = StopSignal()
        self._worker = worker
        self._tick = min(TICK, lease / CHECKS)
        self._end = end

    async def run(self) -> None:
        """Check until stopped."""
        while not await self.stop.wait(self._tick):
            self._worker.end_leases()
            if going_on := self._worker.outlived(clock.now() + EXIT_CHECKS * self._tick):
                _log.error(
                    "%s did not stop when its lease ended: exiting, because another worker may run"
                    " the job now",
                    ", ".join(going_on),
                )
                self._end(EXIT_CODE)
