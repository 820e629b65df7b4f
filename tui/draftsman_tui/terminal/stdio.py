"""Standard streams: terminal detection, width, and errors of stdout.

All writes to stdout go through `write`, to distinguish a full disk or a closed pipe from other
errors.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from draftsman.errors import DraftsmanError

MIN_WIDTH: Final = 40
DUMB: Final = ("dumb", "unknown")
"""Values of TERM for terminals without cursor control."""
PIPED_WIDTH: Final = 10_000
"""Width in cells if stdout is not a terminal, so that lines are not truncated."""


class BrokenStdout(Exception):
    """The reader of stdout closed the pipe."""


class StdoutError(DraftsmanError):
    """Writing to stdout failed."""


def is_terminal(stream: Any) -> bool:
    """Return whether the stream is a terminal; False if it is closed."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # closed
        return False


def is_screen() -> bool:
    """Return whether all streams are terminals with cursor control."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(map(is_terminal, streams)) and os.environ.get("TERM") not in DUMB


def width(stream: Any) -> int:
    """Return the width of the stream in cells."""
    if not is_terminal(stream):
        return PIPED_WIDTH
    return max(MIN_WIDTH, shutil.get_terminal_size((80, 24)).columns)


def is_utf8() -> bool:
    """Return whether stdout is UTF-8."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def write(text: str, lost: str = "") -> None:
    """Write to stdout; raises BrokenStdout, or StdoutError with the `lost` text."""
    if _redirected:
        _redirected[-1](text)
    else:
        _write(lambda: sys.stdout.write(text), lost)


@contextlib.contextmanager
def redirect(put: Callable[[str], None]) -> Iterator[None]:
    """Pass text for stdout and stderr to a function."""
    _redirected.append(put)
    try:
        yield
    finally:
        _redirected.pop()


_redirected: Final[list[Callable[[str], None]]] = []


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout; raises like `write`."""
    _write(lambda: sys.stdout.buffer.write(data), "")


def write_stderr(text: str) -> None:
    """Write to stderr; a closed stream is ignored."""
    if _redirected:
        _redirected[-1](text)
        return
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def abandon_stdout() -> None:
    """Redirect stdout to the null device, so that the flush at exit cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def prepare() -> None:
    """Open closed standard streams on the null device, and escape unencodable characters."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _write(put: Callable[[], object], lost: str) -> None:
    try:
        put()
        sys.stdout.flush()
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ECONNRESET):
            raise BrokenStdout from None
        detail = f"; lost output: {lost}" if lost else ""
        raise StdoutError(f"standard output: {error.strerror}{detail}") from None
