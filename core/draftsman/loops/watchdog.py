"""A thread that notices when the event loop of a worker is blocked.

A handler that loops without ever awaiting stops everything of its worker: heartbeats, other runs,
the reply to SIGTERM. Its leases run out, another worker takes its jobs, and is blocked in turn. The
thread logs where the loop is, once for each block. When the block is as long as a lease, every run
of the worker is lost anyway: the process ends, so that its agents end, it can be started again, and
the runs that it lost spend an attempt each until `max_attempts` makes the guilty one a dead letter.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final, Self

EXIT_CODE: Final = 70
"""EX_SOFTWARE of sysexits.h; no command ends with it otherwise."""
LOG_AFTER: Final = 10.0
"""Seconds of a block, at most, until it is logged."""
CHECKS: Final = 5
"""How often the thread looks until a block is logged."""
FRAMES: Final = 12
LOG_TIMEOUT: Final = 5.0
"""Seconds for a last line: the blocked thread may hold the lock of the log."""
_log = logging.getLogger(__name__)


class Watchdog:
    """Watches the running loop while the block lasts.

    `lease` is in seconds. `runs` says which runs are in hand; `end` is called with EXIT_CODE.
    """

    def __init__(
        self,
        lease: float,
        runs: Callable[[], str],
        end: Callable[[int], None] = os._exit,
        noticed: float = LOG_AFTER,
    ) -> None:
        self.looks = 0
        """How often the thread looked."""
        self._lease = lease
        self._runs = runs
        self._end = end
        self._noticed = min(lease / 4, noticed)
        self._over = threading.Event()
        self._alive = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        """Count own ticks, not seconds: a process that was stopped as a whole is not blocked."""
        tick, blocked, noticed = self._noticed / CHECKS, 0.0, False
        self._ask()
        while not self._over.wait(tick):
            self.looks += 1
            if self._alive.is_set():
                if noticed:
                    _log.warning("the event loop goes on; it was blocked for %.1f s", blocked)
                blocked, noticed = 0.0, False
                self._ask()
                continue
            blocked += tick
            if blocked >= self._noticed and not noticed:
                noticed = True
                self._speak("the event loop is blocked for %.1f s", blocked)
            if blocked >= self._lease:
                self._speak("the event loop is blocked for %.1f s, a lease: exiting", blocked)
                self._end(EXIT_CODE)
                return

    def _ask(self) -> None:
        self._alive.clear()
        try:
            self._loop.call_soon_threadsafe(self._alive.set)
        except RuntimeError:  # the loop is closed
            self._over.set()

    def _speak(self, text: str, blocked: float) -> None:
        arguments = (text + "; runs: %s; at: %s", blocked, self._in_hand(), self._stack())
        speaker = threading.Thread(target=_log.error, args=arguments, daemon=True)
        speaker.start()
        speaker.join(LOG_TIMEOUT)

    def _in_hand(self) -> str:
        try:
            return self._runs() or "none"
        except RuntimeError:  # what it reads changed meanwhile
            return "unknown"

    def _stack(self) -> str:
        """Return where the loop's thread is, the innermost frame first."""
        frame: FrameType | None = sys._current_frames().get(self._watched)
        places: list[str] = []
        while frame is not None and len(places) < FRAMES:
            code = frame.f_code
            places.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_name}")
            frame = frame.f_back
        return " < ".join(places)
