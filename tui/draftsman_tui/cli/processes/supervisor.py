"""Supervision of child processes: restarts after a crash, and orderly shutdown.

Each child runs in a session of its own, so Ctrl-C reaches it only through the supervisor. A child
exits when the supervisor is killed. An attached supervisor shuts down when its stdin, a pipe from
the process that started it, closes without `DETACH`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Final

from draftsman.log import keys
from draftsman.processes.shutdown import ShutdownSignals
from draftsman_tui.cli.processes.source_watch import SourceWatch
from draftsman_tui.terminal.own_command import start_process

DETACH: Final = b"detach\n"
BACKOFF: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before successive restarts of a child; the last value repeats."""
STABLE_AFTER: Final = 60.0
"""Uptime in seconds that resets the backoff."""
FATAL_EXIT_CODE: Final = 2
"""Exit code of a configuration error, after which a child is not restarted."""
_log = logging.getLogger(__name__)


class Child:
    """A child process that is restarted when it exits, until it is stopped."""

    def __init__(self, name: str, command: Sequence[str], stopping: str) -> None:
        self.killed = False
        self._name = name
        self._command = command
        self._stopping = stopping
        self._stop = asyncio.Event()
        self._change = asyncio.Event()
        self._reloads = False
        self._process: Process | None = None

    async def run(self) -> int:
        """Keep the process running until stopped; return its exit code, 0 after a stop."""
        failures = 0
        while True:
            started = time.monotonic()
            self._change.clear()
            code = await self._run_once()
            if self._stop.is_set():
                return 0
            if self._change.is_set():
                failures = 0
                continue
            if code == FATAL_EXIT_CODE and not self._reloads:
                return code
            if code == FATAL_EXIT_CODE:
                _log.warning("%s cannot start; it waits for a change of its code", self._name)
                await self._wait_for_change(None)
                continue
            uptime = time.monotonic() - started
            failures = 0 if uptime > STABLE_AFTER else failures
            delay = BACKOFF[min(failures, len(BACKOFF) - 1)]
            failures += 1
            _log.warning(
                "%s %s after %.0f s; restarting in %s s",
                self._name,
                _exit_text(code),
                uptime,
                delay,
            )
            await self._wait_for_change(delay)

    async def reload(self, watch: SourceWatch) -> None:
        """Restart the process after each change of its code; it finishes its work first."""
        self._reloads = True
        async for name in watch.changes():
            _log.info("%s changed; restarting the %s", name, self._name)
            self._change.set()

    def stop(self) -> None:
        """Shut the process down and do not restart it."""
        self._stop.set()

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None and self._process.returncode is None:
            _log.warning("second signal: killing %s", self._name, extra=keys(pid=self._process.pid))
            self.killed = True
            self._process.kill()

    def abandon(self) -> None:
        """Send SIGTERM without waiting."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()

    async def _wait_for_change(self, seconds: float | None) -> None:
        """Wait for so long, until a change of the code or a stop."""
        waits = [asyncio.create_task(event.wait()) for event in (self._stop, self._change)]
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _run_once(self) -> int:
        """Run the process until it exits, or until a stop or a change, which are a SIGTERM."""
        if self._stop.is_set():
            return 0
        self._process = process = await start_process(self._command)
        _log.info("%s started", self._name, extra=keys(pid=process.pid))
        stopping = asyncio.create_task(self._wait_for_change(None))
        ending = asyncio.create_task(process.wait())
        await asyncio.wait({stopping, ending}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ending.done():
            _log.info("stopping %s", self._stopping, extra=keys(pid=process.pid))
            process.send_signal(signal.SIGTERM)
        return await ending


def _exit_text(code: int) -> str:
    """Return how a process ended, as shown to users; a negative code is a signal."""
    return (
        f"was killed ({signal.Signals(-code).name})" if code < 0 else f"exited with status {code}"
    )


class Supervisor:
    """Runs children until a signal, or until a child exits with a configuration error."""

    def __init__(self, children: Sequence[Child], watch: SourceWatch | None = None) -> None:
        """`watch` has the code of the first child, which restarts with it."""
        self._children = children
        self._watch = watch
        self._signal: str | None = None

    async def run(self, signals: ShutdownSignals, *, attached: bool = False) -> int:
        """Supervise the children; return the exit code."""
        pipe_watch = asyncio.create_task(self._watch_pipe()) if attached else None
        try:
            with signals.handled_by(self._receive):
                return await self._supervise()
        finally:
            if pipe_watch is not None:
                pipe_watch.cancel()
            for child in self._children:
                child.abandon()

    async def _supervise(self) -> int:
        watching = (
            None
            if self._watch is None
            else asyncio.create_task(self._children[0].reload(self._watch))
        )
        tasks = [asyncio.create_task(child.run()) for child in self._children]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if watching is not None:
            watching.cancel()
        for child in self._children:
            child.stop()
        codes = await asyncio.gather(*tasks)
        if self._signal is None:
            return max(codes)
        _log.info("stopped")
        killed = any(child.killed for child in self._children)
        return 128 + signal.Signals[self._signal] if killed else 0

    def _receive(self, name: str) -> None:
        """Stop the children at the first signal, kill them at the second."""
        again = self._signal is not None
        self._signal = self._signal or name
        for child in self._children:
            if again:
                child.kill()
            else:
                child.stop()

    async def _watch_pipe(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        if not (await reader.read()).endswith(DETACH):
            self._receive(signal.SIGHUP.name)
