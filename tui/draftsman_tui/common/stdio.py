"""The standard streams: whether a person is there, how wide it is, and what failing means.

All of stdout goes through `write`, so that a full disk, or a reader that went away, is told from
everything else that may fail.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, Final

from draftsman.errors import DraftsmanError

MIN_WIDTH: Final = 40
DUMB: Final = ("dumb", "unknown")
"""Values of TERM that promise no more than lines of text."""
PIPED_WIDTH: Final = 10_000
"""Cells: what another program reads is never cut."""


class BrokenStdout(Exception):
    """Whoever read our stdout closed it."""


class StdoutError(DraftsmanError):
    """Standard output cannot be written."""


def is_terminal(stream: Any) -> bool:
    """Return whether a person sits at the stream."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # closed
        return False


def is_screen() -> bool:
    """Return whether a person sits at a terminal that more than lines can be shown on."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(map(is_terminal, streams)) and os.environ.get("TERM") not in DUMB


def width(stream: Any) -> int:
    """Return the cells of a line."""
    if not is_terminal(stream):
        return PIPED_WIDTH
    return max(MIN_WIDTH, shutil.get_terminal_size((80, 24)).columns)


def is_utf8() -> bool:
    """Return whether stdout takes every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def write(text: str, told: str = "") -> None:
    """Write to stdout; raises ReaderGone, and CannotWrite with what should have been `told`."""
    _write(lambda: sys.stdout.write(text), told)


def write_bytes(data: bytes) -> None:
    """Write a file's bytes to stdout; raises like `write`."""
    _write(lambda: sys.stdout.buffer.write(data), "")


def write_stderr(text: str) -> None:
    """Write to stderr; one that is gone does not matter."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def abandon_stdout() -> None:
    """Send the rest of stdout nowhere: the interpreter's own flush at exit must not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def prepare() -> None:
    """Fill closed streams: the next file opened must not become our stdout. Let nothing garble."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _write(put: Callable[[], object], told: str) -> None:
    try:
        put()
        sys.stdout.flush()
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ECONNRESET):
            raise BrokenStdout from None
        said = f"; it would have said: {told}" if told else ""
        raise StdoutError(f"standard output: {error.strerror}{said}") from None
