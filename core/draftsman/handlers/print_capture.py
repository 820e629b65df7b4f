"""Capture of the output that handlers print, in the log of their run.

`sys.stdout` and `sys.stderr` of a worker are replaced by routers. A context variable has the run
that prints; outside of runs, as for the worker's own log, output goes to the original stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token
from typing import Any, Final, Self, TextIO, cast

from draftsman.handlers.run_log import CHUNK, ROOM_TIMEOUT, TRUNCATION_MARK
from draftsman.log import redact

MAX_WAITING: Final = 8 * CHUNK
"""Characters that threads may print before they wait for the event loop."""
Source = tuple[str, int]
"""A stream and the thread that writes to it; the lines of two sources are never mixed."""
_lock = threading.Lock()
_emptied = threading.Condition(_lock)
"""Guards the buffers of threads; notified when an event loop has emptied them."""
_printing: ContextVar[PrintCapture | None] = ContextVar("draftsman_printing", default=None)


class PrintCapture:
    """Captures the output of a run inside a `with` block, line by line and redacted.

    The output comes from the handler's task, from tasks that it starts, and from threads of
    `asyncio.to_thread`, which all share the handler's context. Create it on the event loop `loop`.
    """

    __slots__ = ("_closed", "_lines", "_log", "_loop", "_size", "_thread", "_token", "_waiting")
    _token: Token[PrintCapture | None]

    def __init__(self, log: Callable[[str], None], loop: asyncio.AbstractEventLoop) -> None:
        self._log = log
        self._loop = loop
        self._thread = threading.get_ident()
        self._lines: dict[Source, str] = {}
        self._waiting: list[tuple[Source, str]] = []
        self._size = 0
        self._closed = False

    def __enter__(self) -> Self:
        self._token = _printing.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _printing.reset(self._token)
        with _lock:
            self._closed = True
        self.flush()
        del self._log, self._token  # the run refers to this capture, and its log to the run

    def write(self, stream: str, text: str) -> bool:
        """Capture text; return False once the run has ended."""
        if self._closed:
            return False
        source = (stream, threading.get_ident())
        if source[1] != self._thread:
            return self._enqueue(source, text)
        self._drain()
        self._add(source, text)
        return True

    def flush(self) -> None:
        """Log the buffered output of threads, and incomplete lines."""
        if not (self._waiting or self._lines):
            return
        self._drain()
        for source in list(self._lines):
            if rest := self._lines.pop(source):
                self._emit(rest)

    def _enqueue(self, source: Source, text: str) -> bool:
        """Queue the text of a thread for the event loop; wait while the queue is full."""
        with _emptied:
            if self._closed:
                return False
            first = not self._waiting
            self._waiting.append((source, text))
            self._size += len(text)
            if first:
                try:
                    self._loop.call_soon_threadsafe(self._drain)
                except RuntimeError:  # the event loop is closed
                    self._waiting.clear()
                    return False
            if not _emptied.wait_for(lambda: self._size < MAX_WAITING, ROOM_TIMEOUT):
                self._waiting, self._size = [(source, TRUNCATION_MARK)], len(TRUNCATION_MARK)
        return True

    def _drain(self) -> None:
        with _emptied:
            waiting, self._waiting, self._size = self._waiting, [], 0
            _emptied.notify_all()
        for source, text in waiting:
            self._add(source, text)

    def _add(self, source: Source, text: str) -> None:
        *lines, rest = (self._lines.get(source, "") + text).split("\n")
        if lines:
            self._emit("\n".join(map(_final_text, lines)))
        rest = _final_text(rest) if len(rest) > CHUNK else rest
        if len(rest) > CHUNK:
            self._emit(rest)
            rest = ""
        self._lines[source] = rest

    def _emit(self, text: str) -> None:
        self._log(redact(text) + "\n")


class _Router:
    """A standard stream that writes to the current run's capture, if any."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, text: str) -> int:
        prints = _printing.get()
        if prints is None or not prints.write(self._name, text):
            return self._stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _printing.get() is None:
            self._stream.flush()

    def isatty(self) -> bool:
        return _printing.get() is None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_routed: list[tuple[_Router, _Router]] = []
_users = 0


@contextlib.contextmanager
def route_standard_streams() -> Iterator[None]:
    """Route the standard streams of this process until the last such block ends."""
    global _users
    if _users == 0:
        _routed.append((_Router(sys.stdout, "stdout"), _Router(sys.stderr, "stderr")))
        sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", _routed[0])
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if _users == 0:
            _restore(*_routed.pop())


def _restore(out: _Router, err: _Router) -> None:
    """Restore the streams, unless other code has replaced the routers."""
    if cast("object", sys.stdout) is out:
        sys.stdout = out._stream
    if cast("object", sys.stderr) is err:
        sys.stderr = err._stream


def _final_text(line: str) -> str:
    """Return the visible text of a line that was redrawn with carriage returns."""
    return line.removesuffix("\r").rpartition("\r")[2]
