"""What `up --headless` does: keeps one child process running, and stops it in order.

The child has a session of its own, so that Ctrl-C reaches it through us alone and counts once.
When we are killed it notices by itself and shuts down.

With a leash, our stdin is a pipe that whoever started us holds: when it closes we shut down,
unless `DETACH` came through it before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Iterator, Sequence
from typing import Final

from draftsman.log import keys

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
DETACH: Final = b"detach\n"
BACKOFF: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the child is started again, one after the other; the last repeats."""
STEADY: Final = 60.0
"""Seconds after which a child counts as healthy: the next backoff starts anew."""
HOPELESS: Final = 2
"""A child that ends with it has a wrong configuration, which no restart mends."""
_log = logging.getLogger(__name__)


class Supervisor:
    """Starts `command`, starts it again when it dies, stops it when told."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._stop = asyncio.Event()
        self._child: Process | None = None
        self._told: int | None = None
        self._killed = False

    async def run(self, *, attached: bool = False) -> int:
        """Supervise until a signal; return the exit code."""
        leash = asyncio.create_task(self._hold_leash()) if attached else None
        try:
            with self._signals():
                return await self._supervise()
        finally:
            if leash is not None:
                leash.cancel()
            if self._child is not None and self._child.returncode is None:
                self._child.terminate()

    async def _supervise(self) -> int:
        failures = 0
        while True:
            began = time.monotonic()
            code = await self._run_child()
            if self._told is not None:
                _log.info("stopped")
                return 128 + self._told if self._killed else 0
            if code == HOPELESS:
                return code
            lived = time.monotonic() - began
            failures = 0 if lived > STEADY else failures
            delay = BACKOFF[min(failures, len(BACKOFF) - 1)]
            failures += 1
            _log.warning("the worker ended with %s after %.0f s; again in %s s", code, lived, delay)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay)
            if self._told is not None:
                return 0

    async def _run_child(self) -> int:
        """Run the child to its end; once told to stop, pass that on to it."""
        self._child = child = await asyncio.create_subprocess_exec(
            *self._command, stdin=DEVNULL, start_new_session=True
        )
        _log.info("worker started", extra=keys(pid=child.pid))
        stopping = asyncio.create_task(self._stop.wait())
        ending = asyncio.create_task(child.wait())
        await asyncio.wait({stopping, ending}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ending.done():
            _log.info("stopping the worker; its runs get time to finish", extra=keys(pid=child.pid))
            child.send_signal(signal.SIGTERM)
        return await ending

    def _tell(self, number: int) -> None:
        """Stop in order the first time; the second time kill."""
        if self._told is None:
            self._told = number
            self._stop.set()
        elif self._child is not None and self._child.returncode is None:
            _log.warning("told again: killing the worker", extra=keys(pid=self._child.pid))
            self._killed = True
            self._child.kill()

    async def _hold_leash(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        if not (await reader.read()).endswith(DETACH):
            self._tell(signal.SIGHUP)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._tell, number)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
