"""Capture of what handlers print: each run's text goes to the log of that run.

`sys.stdout` and `sys.stderr` of a worker are replaced by routers. A context variable names the run
that prints; without one, as for the worker's own log, the text goes where it always went.
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
"""Characters that threads may print before they wait for the event loop to take them."""
Source = tuple[str, int]
"""A stream and the thread that writes to it, whose lines are not mixed with those of others."""
_taken = threading.Condition()
"""Guards what threads have printed, and tells them that an event loop has taken it."""
_printing: ContextVar[PrintCapture | None] = ContextVar("draftsman_printing", default=None)


class PrintCapture:
    """Text that one run prints, passed on line by line without what looks like a secret.

    It comes from the handler's task, from tasks that it starts, and from threads of
    `asyncio.to_thread`, which all share the handler's context. Create it on the event loop; inside
    a `with` block of it, what is printed goes to the log. Each run has one, so it has to be cheap.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lines: dict[Source, str] = {}
        self._waiting: list[tuple[Source, str]] = []
        self._size = 0
        self._closed = False
        self._token: Token[PrintCapture | None]

    def __enter__(self) -> Self:
        self._token = _printing.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _printing.reset(self._token)
        self.flush()
        self._closed = True

    def write(self, stream: str, text: str) -> bool:
        """Take text; return False once the run is over."""
        if self._closed:
            return False
        source = (stream, threading.get_ident())
        if source[1] != self._thread:
            return self._hand_over(source, text)
        self._take_waiting()
        self._take(source, text)
        return True

    def flush(self) -> None:
        """Pass on what threads printed, and lines without an end."""
        if not (self._waiting or self._lines):
            return
        self._take_waiting()
        for source in list(self._lines):
            if rest := self._lines.pop(source):
                self._pass_on(rest)

    def _hand_over(self, source: Source, text: str) -> bool:
        """Leave the text of a thread to the event loop; wait while that has much to take."""
        with _taken:
            first = not self._waiting
            self._waiting.append((source, text))
            self._size += len(text)
            if first:
                try:
                    self._loop.call_soon_threadsafe(self._take_waiting)
                except RuntimeError:  # the event loop is closed
                    self._waiting.clear()
                    return False
            if not _taken.wait_for(lambda: self._size < MAX_WAITING, ROOM_TIMEOUT):
                self._waiting, self._size = [(source, TRUNCATION_MARK)], len(TRUNCATION_MARK)
        return True

    def _take_waiting(self) -> None:
        with _taken:
            waiting, self._waiting, self._size = self._waiting, [], 0
            _taken.notify_all()
        for source, text in waiting:
            self._take(source, text)

    def _take(self, source: Source, text: str) -> None:
        *lines, rest = (self._lines.get(source, "") + text).split("\n")
        if lines:
            self._pass_on("\n".join(map(_last_state, lines)))
        rest = _last_state(rest) if len(rest) > CHUNK else rest
        if len(rest) > CHUNK:
            self._pass_on(rest)
            rest = ""
        self._lines[source] = rest

    def _pass_on(self, text: str) -> None:
        self._log(redact(text) + "\n")


class _Router:
    """A standard stream that asks the context where its text goes."""

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
    """Route the standard streams of this process until the last of these blocks ends."""
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
    """Put the streams back, unless others have replaced ours."""
    if cast("object", sys.stdout) is out:
        sys.stdout = out._stream
    if cast("object", sys.stderr) is err:
        sys.stderr = err._stream


def _last_state(line: str) -> str:
    """Return what a terminal would show of a line that was drawn again and again."""
    return line.removesuffix("\r").rpartition("\r")[2]
