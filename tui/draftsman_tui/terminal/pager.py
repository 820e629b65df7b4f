"""Pager for long output on a terminal, as git has: `$DRAFTSMAN_PAGER`, `$PAGER`, or less."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from draftsman_tui.terminal import stdio

DEFAULT: Final = "less"
LESS: Final = "FRX"
"""Options of less: quit if one screen, show colors, leave the text on the screen."""
NONE: Final = ("", "cat")
"""Values that disable the pager."""


@contextmanager
def paged(*, enabled: bool = True) -> Iterator[None]:
    """Show output in a pager once it is longer than the screen.

    Without effect if stdout is not a terminal. A reader who ends the pager ends the output, which
    is no error.
    """
    command = pager_command() if enabled and stdio.is_terminal(sys.stdout) else None
    if command is None or os.environ.get("TERM") in stdio.DUMB:
        yield
        return
    pager = _Pager(command, shutil.get_terminal_size((80, 24)).lines)
    try:
        with stdio.redirect(pager.write):
            yield
    except stdio.BrokenStdout:
        if not pager.closed:
            raise
    finally:
        pager.close()


def pager_command() -> str | None:
    """Return the shell command of the pager; None if it is disabled or not installed."""
    names = ("DRAFTSMAN_PAGER", "PAGER")
    command = next((os.environ[name].strip() for name in names if name in os.environ), DEFAULT)
    if command in NONE or (command == DEFAULT and shutil.which(DEFAULT) is None):
        return None
    return command


class _Pager:
    """Output that is kept until it is longer than the screen, and then goes to the pager."""

    def __init__(self, command: str, height: int) -> None:
        self._command = command
        self._height = height
        self._kept = ""
        self._process: subprocess.Popen[str] | None = None
        self.closed = False
        """Whether the reader ended the pager."""

    def write(self, text: str) -> None:
        """Write text; raises BrokenStdout once the pager has ended."""
        if self._process is None:
            self._kept += text
            if self._kept.count("\n") < self._height:
                return
            text = self._kept
            self._kept = ""
            self._process = self._start()
        try:
            stream = _input(self._process)
            stream.write(text)
            stream.flush()
        except OSError:
            self.closed = True
            raise stdio.BrokenStdout from None

    def close(self) -> None:
        """Print the kept output, or wait for the end of the pager."""
        if self._process is None:
            if self._kept:
                stdio.write(self._kept)
            return
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the pager's
        try:
            with contextlib.suppress(OSError):
                _input(self._process).close()
            self._process.wait()
        finally:
            signal.signal(signal.SIGINT, before)

    def _start(self) -> subprocess.Popen[str]:
        environment = {"LESS": LESS, "LV": "-c", **os.environ}
        return subprocess.Popen(
            ["sh", "-c", self._command],
            stdin=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
            errors="backslashreplace",
        )


def _input(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdin is None:
        raise ValueError("a pager needs a pipe")
    return process.stdin
