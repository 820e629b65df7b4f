"""What `up --headless` does: keeps child processes running, and stops them in order.

Each child has a session of its own, so that Ctrl-C reaches it through us alone and counts once.
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
from collections.abc import Sequence
from typing import Final

from draftsman.log import keys
from draftsman.shutdown import ShutdownSignals, blocked

DETACH: Final = b"detach\n"
BACKOFF: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the child is started again, one after the other; the last repeats."""
STABLE_AFTER: Final = 60.0
"""Seconds after which a child counts as healthy: the next backoff starts anew."""
FATAL_EXIT_CODES: Final = 2
"""A child that ends with it has a wrong configuration, which no restart mends."""
_log = logging.getLogger(__name__)


class Child:
    """One process: started, started again when it dies, stopped when told."""

    def __init__(self, name: str, command: Sequence[str], stopping: str) -> None:
        self.killed = False
        self._name = name
        self._command = command
        self._stopping = stopping
        self._stop = asyncio.Event()
        self._process: Process | None = None

    async def run(self) -> int:
        """Keep it running until told to stop; return its exit code, 0 when it was told."""
        failures = 0
        while True:
            began = time.monotonic()
            code = await self._run_once()
            if self._stop.is_set():
                return 0
            if code == FATAL_EXIT_CODES:
                return code
            lived = time.monotonic() - began
            failures = 0 if lived > STABLE_AFTER else failures
            delay = BACKOFF[min(failures, len(BACKOFF) - 1)]
            failures += 1
            _log.warning(
                "%s %s after %.0f s; restarting in %s s",
                self._name,
                _exit_text(code),
                lived,
                delay,
            )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._stop.wait()
            if self._stop.is_set():
                return 0

    def stop(self) -> None:
        """End it in order, and do not start it again."""
        self._stop.set()

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            _log.warning(
                "second stop signal: killing the %s", self._name, extra=keys(pid=self._process.pid)
            )
            self.killed = True
            self._process.kill()

    def abandon(self) -> None:
        """Tell it to end, and do not wait."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    async def _run_once(self) -> int:
        """Run it to its end; once told to stop, pass that on to it."""
        with blocked():
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, stdin=DEVNULL, start_new_session=True
            )
        _log.info("%s started", self._name, extra=keys(pid=process.pid))
        stopping = asyncio.create_task(self._stop.wait())
        ending = asyncio.create_task(process.wait())
        await asyncio.wait({stopping, ending}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ending.done():
            _log.info("stopping the %s", self._stopping, extra=keys(pid=process.pid))
            process.send_signal(signal.SIGTERM)
        return await ending


def _exit_text(code: int) -> str:
    """Return how a process ended, as shown to users; a negative code is a signal."""
    return (
        f"was killed ({signal.Signals(-code).name})" if code < 0 else f"exited with status {code}"
    )


class Supervisor:
    """Runs children until a signal, or until one has a configuration that no restart mends."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        self._told: str | None = None

    async def run(self, signals: ShutdownSignals, *, attached: bool = False) -> int:
        """Supervise; return the exit code."""
        leash = asyncio.create_task(self._hold_leash()) if attached else None
        try:
            with signals.handled_by(self._tell):
                return await self._supervise()
        finally:
            if leash is not None:
                leash.cancel()
            for child in self._children:
                child.abandon()

    async def _supervise(self) -> int:
        tasks = [asyncio.create_task(child.run()) for child in self._children]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for child in self._children:
            child.stop()
        codes = await asyncio.gather(*tasks)
        if self._told is None:
            return max(codes)
        _log.info("stopped")
        return (
            128 + signal.Signals[self._told] if any(child.killed for child in self._children) else 0
        )

    def _tell(self, name: str) -> None:
        """Stop in order the first time; the second time kill."""
        again, self._told = self._told is not None, self._told or name
        for child in self._children:
            if again:
                child.kill()
            else:
                child.stop()

    async def _hold_leash(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        if not (await reader.read()).endswith(DETACH):
            self._tell(signal.SIGHUP.name)
