"""A thread that detects a blocked event loop of a worker.

A handler that loops without awaiting stops its whole worker: heartbeats, other runs, the response
to SIGTERM. The leases expire, another worker takes the jobs and is blocked in turn. The thread logs
the position of the loop, once for each block. When the first lease of a run ends during the block,
other workers take its jobs: the process exits, so that its agents end and it can be restarted. Each
lost run spends an attempt, until `max_attempts` makes the blocking job a dead letter.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, Self

EXIT_CODE: Final = 70
"""EX_SOFTWARE of sysexits.h; no other exit of a command uses it."""
LOG_AFTER: Final = 10.0
"""Maximum duration of a block before it is logged, in seconds."""
CHECKS: Final = 5
"""Number of checks before a block is logged."""
FRAMES: Final = 12
LOG_TIMEOUT: Final = 5.0
"""Seconds to wait for a log line: the blocked thread may hold the lock of the log."""
_log = logging.getLogger(__name__)


class Watchdog:
    """Watches the running event loop inside a `with` block.

    `lease` is in seconds, and `lease_left` returns the seconds until the first lease of a run ends.
    `runs` returns the names of the active runs; `end` is called with EXIT_CODE.
    """

    def __init__(
        self,
        lease: float,
        runs: Callable[[], str],
        end: Callable[[int], None] = os._exit,
        log_after: float = LOG_AFTER,
        lease_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self.looks = 0
        """Number of checks so far."""
        self._lease = self._limit = lease
        self._lease_left = lease_left
        self._runs = runs
        self._end = end
        self._log_after = min(lease / 4, log_after)
        self._stopped = threading.Event()
        self._alive = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        """Watch by own ticks, not time: a process that was suspended as a whole is not blocked."""
        tick = self._log_after / CHECKS
        blocked = 0.0
        logged = False
        self._ping()
        while not self._stopped.wait(tick):
            self.looks += 1
            if self._alive.is_set():
                if logged:
                    _log.warning(
                        "the event loop was blocked for %.1f s and is running again", blocked
                    )
                blocked = 0.0
                logged = False
                self._ping()
                continue
            blocked += tick
            if blocked >= self._log_after and not logged:
                logged = True
                self._log_block("the event loop has been blocked for %.1f s", blocked)
            if blocked >= self._limit:
                self._log_block(
                    "the event loop has been blocked until a lease ended, %.1f s: exiting", blocked
                )
                self._end(EXIT_CODE)
                return

    def _ping(self) -> None:
        self._alive.clear()
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the loop is closed
            self._stopped.set()

    def _answer(self) -> None:
        """Answer in the event loop, with the time that a block from now on may take."""
        self._limit = max(self._log_after, min(self._lease, self._lease_left()))
        self._alive.set()

    def _log_block(self, text: str, blocked: float) -> None:
        arguments = (text + "; runs: %s; at: %s", blocked, self._run_names(), self._stack())
        thread = threading.Thread(target=_log.error, args=arguments, daemon=True)
        thread.start()
        thread.join(LOG_TIMEOUT)

    def _run_names(self) -> str:
        try:
            return self._runs() or "none"
        except RuntimeError:  # the runs changed during iteration
            return "unknown"

    def _stack(self) -> str:
        """Return the call stack of the loop's thread, innermost frame first."""
        frame: FrameType | None = sys._current_frames().get(self._watched)
        frames: list[str] = []
        while frame is not None and len(frames) < FRAMES:
            code = frame.f_code
            frames.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
            frame = frame.f_back
        return " < ".join(frames)
