"""Handle of the supervisor that `up` starts in a session of its own.

The supervisor's stdin is a pipe from this process. When the pipe closes, for whatever reason, the
supervisor stops everything, unless it was detached first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final

from draftsman.errors import UsageError
from draftsman_tui.cli.processes.supervisor import DETACH
from draftsman_tui.terminal.own_command import start_process

MAX_LOG_SIZE: Final = 10_000_000
"""Bytes; a larger log is truncated at the start."""
MAX_RECENT_LINES: Final = 20
"""Maximum number of recent log lines in memory."""


class SupervisorHandle:
    """A running supervisor and its log."""

    def __init__(self, process: Process, log: Path, lines: BinaryIO) -> None:
        self.pid = process.pid
        self.log = log
        self.exit_task = asyncio.create_task(process.wait())
        self.stopping = False
        self.detached = False
        self.recent = deque[str](maxlen=MAX_RECENT_LINES)
        self._process = process
        self._lines = lines

    @property
    def ended(self) -> bool:
        """Whether the supervisor exited."""
        return self.exit_task.done()

    def stop(self) -> None:
        """Request shutdown; a second call makes the supervisor kill its children."""
        self.stopping = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def detach(self) -> None:
        """Keep the supervisor running after this process exits."""
        self.detached = True
        assert self._process.stdin is not None  # noqa: S101 - it was started with a pipe
        self._process.stdin.write(DETACH)
        self._process.stdin.close()

    def read_new_output(self) -> str:
        """Return the log output since the last call."""
        text = self._lines.read().decode("utf-8", "replace")
        self.recent += text.splitlines()
        return text


@asynccontextmanager
async def start_supervisor(command: Sequence[str], log: Path) -> AsyncIterator[SupervisorHandle]:
    """Start the supervisor and read its log from here; raises UsageError for an unwritable log."""
    with _log_file(log) as file:
        offset = file.seek(0, os.SEEK_END)
        process = await start_process(command, stdin=PIPE, output=file)
    with log.open("rb") as lines:
        lines.seek(offset)
        handle = SupervisorHandle(process, log, lines)
        try:
            yield handle
        finally:
            handle.exit_task.cancel()


def _log_file(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_SIZE:
            path.write_bytes(b"")
        return path.open("ab")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; set data_dir to a writable directory"
        ) from None
