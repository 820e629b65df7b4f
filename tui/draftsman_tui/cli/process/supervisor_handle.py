"""The supervisor that `up` on a terminal starts: in a session of its own, and held by a leash.

The leash is a pipe that closes with us, however we end; then the supervisor stops all. To leave it
running is to let go of the leash.
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
from draftsman.shutdown import blocked
from draftsman_tui.cli.process.supervisor import DETACH

MAX_LOG_SIZE: Final = 10_000_000
"""Bytes of log above which a new start empties it."""
MAX_RECENT_LINES: Final = 20
"""Lines of its log that are kept to be told."""


class SupervisorHandle:
    """A supervisor that runs, and what it and its children log."""

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
        """Whether it is no more."""
        return self.exit_task.done()

    def stop(self) -> None:
        """Tell it to end in order; told again, it kills what does not end."""
        self.stopping = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def detach(self) -> None:
        """Leave it running when we end."""
        self.detached = True
        assert self._process.stdin is not None  # noqa: S101 - it was started with a pipe
        self._process.stdin.write(DETACH)
        self._process.stdin.close()

    def read_new_output(self) -> str:
        """Return what was logged since the last look."""
        text = self._lines.read().decode("utf-8", "replace")
        self.recent += text.splitlines()
        return text


@asynccontextmanager
async def start_supervisor(command: Sequence[str], log: Path) -> AsyncIterator[SupervisorHandle]:
    """Start it, and read its log from here on; raises UsageError where there can be no log."""
    with _log_file(log) as file, blocked():
        at = file.seek(0, os.SEEK_END)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=file, stderr=file, start_new_session=True
        )
    with log.open("rb") as lines:
        lines.seek(at)
        held = SupervisorHandle(process, log, lines)
        try:
            yield held
        finally:
            held.exit_task.cancel()


def _log_file(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_SIZE:
            path.write_bytes(b"")
        return path.open("ab")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; set data_dir to a directory that you can write to"
        ) from None
