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
from draftsman_tui.cli.supervise import DETACH

KEPT: Final = 10_000_000
"""Bytes of log above which a new start empties it."""
RECENT: Final = 20
"""Lines of its log that are kept to be told."""


class Held:
    """A supervisor that runs, and what it and its children log."""

    def __init__(self, process: Process, log: Path, lines: BinaryIO) -> None:
        self.pid = process.pid
        self.log = log
        self.ending = asyncio.create_task(process.wait())
        self.told = False
        self.left = False
        self.recent = deque[str](maxlen=RECENT)
        self._process = process
        self._lines = lines

    @property
    def ended(self) -> bool:
        """Whether it is no more."""
        return self.ending.done()

    def stop(self) -> None:
        """Tell it to end in order; told again, it kills what does not end."""
        self.told = True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def let_go(self) -> None:
        """Leave it running when we end."""
        self.left = True
        assert self._process.stdin is not None  # noqa: S101 - it was started with a pipe
        self._process.stdin.write(DETACH)
        self._process.stdin.close()

    def said(self) -> str:
        """Return what was logged since the last look."""
        text = self._lines.read().decode("utf-8", "replace")
        self.recent += text.splitlines()
        return text


@asynccontextmanager
async def holding(command: Sequence[str], log: Path) -> AsyncIterator[Held]:
    """Start it, and read its log from here on; raises UsageError where there can be no log."""
    with _log_file(log) as file, blocked():
        at = file.seek(0, os.SEEK_END)
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=file, stderr=file, start_new_session=True
        )
    with log.open("rb") as lines:
        lines.seek(at)
        held = Held(process, log, lines)
        try:
            yield held
        finally:
            held.ending.cancel()


def _log_file(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > KEPT:
            path.write_bytes(b"")
        return path.open("ab")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; set data_dir to a directory that you can write to"
        ) from None
