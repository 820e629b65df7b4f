"""The log of a run, buffered and stored in chunks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar, Token
from typing import Any, Final, Self, TextIO, cast

from draftsman.errors import DraftsmanError, LeaseLost
from draftsman.ids import job_name
from draftsman.jobs.runs.run import Lease
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.log import OWN, redact
from draftsman.settings.quotas import QuotaSettings

CHUNK: Final = 64 * 1024
"""Maximum characters of a stored chunk."""
DELAY: Final = 1.0
"""Seconds that a line is buffered before it is stored."""
BUFFER_LIMIT: Final = 16 * CHUNK
"""Maximum characters buffered while the database is unreachable; older text is dropped."""
ROOM_TIMEOUT: Final = 10.0
"""Seconds that a fast writer waits for the database before its text is truncated."""
TRUNCATION_MARK: Final = "[... earlier output dropped]\n"
QUOTA_MARK: Final = "[... log truncated: limit of {:,} bytes per {} reached ([quotas] {})]\n"
QUOTA_MARK_BYTES: Final = 200
"""Bytes of QUOTA_MARK, which are stored beyond the limit."""
_log = logging.getLogger(__name__)


class RunLog:
    """Buffers the log of a run and appends it to `run_log_chunks`, in order.

    Text over a quota is dropped; QUOTA_MARK is the last line then.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        lease: Lease,
        quotas: QuotaSettings | None = None,
        *,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._quotas = quotas or QuotaSettings()
        self._bytes_left = self._quotas.log_bytes
        self._hide = hide
        self._checkpoints = checkpoints
        self._lease = lease
        self._text = ""
        self._chunk = ""  # being stored, unchanged until the database confirms it
        self._chunk_at = 0.0
        self._began_at = 0.0
        """When the chunk and the buffer began, by the monotonic clock."""
        self._seq = 0
        self._store_lock = asyncio.Lock()
        self._full = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    def write(self, text: str) -> None:
        """Append lines; a missing final newline is added."""
        self.append(text if text.endswith("\n") else text + "\n")

    async def wait_for_room(self) -> None:
        """Wait while the buffer is full, so that a fast writer is slowed down and loses nothing."""
        if len(self._text) > 2 * CHUNK:
            with contextlib.suppress(TimeoutError, DraftsmanError):
                async with asyncio.timeout(ROOM_TIMEOUT):
                    await self._flush()

    def append(self, text: str) -> None:
        """Append text unchanged."""
        if not self._text:
            self._began_at = time.monotonic()
        self._text += self._within(self._hide(text))
        if len(self._text) > BUFFER_LIMIT:
            self._text = TRUNCATION_MARK + self._text[-BUFFER_LIMIT // 2 :]
        if len(self._text) >= CHUNK:
            self._full.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Store the rest of the buffer; nothing if the lease is lost."""
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
        with contextlib.suppress(LeaseLost):
            await self._flush()

    def _within(self, text: str) -> str:
        """Return the part of the text within the run's quota, with QUOTA_MARK at its end."""
        if self._bytes_left <= 0:
            return ""
        data = text.encode("utf-8", "replace")
        if len(data) <= self._bytes_left:
            self._bytes_left -= len(data)
            return text
        text_within = data[: self._bytes_left].decode("utf-8", "ignore")
        self._bytes_left = 0
        mark = QUOTA_MARK.format(self._quotas.log_bytes, "run", "log_bytes")
        return text_within + ("" if text_within.endswith("\n") or not text_within else "\n") + mark

    async def _store(self) -> None:
        """Store a chunk; once the job's quota is used up, store QUOTA_MARK and stop."""
        limit = self._quotas.job_log_bytes
        age = time.monotonic() - self._chunk_at
        if await self._checkpoints.log(self._lease, self._seq, self._chunk, limit, age):
            return
        mark = QUOTA_MARK.format(limit, "job", "job_log_bytes")
        await self._checkpoints.log(self._lease, self._seq, mark, limit + QUOTA_MARK_BYTES, age)
        self._bytes_left = 0
        self._text = ""

    async def _write(self) -> None:
        while self._chunk or self._text:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DELAY):
                    await self._full.wait()
            self._full.clear()
            try:
                await asyncio.shield(asyncio.ensure_future(self._flush()))
            except LeaseLost:
                self._chunk = ""
                self._text = ""
            except DraftsmanError as error:
                _log.warning(
                    "cannot store the log of %s, retrying: %s", job_name(self._lease.job), error
                )

    async def _flush(self) -> None:
        async with self._store_lock:
            while self._chunk or self._text:
                if not self._chunk:
                    self._chunk = self._text[:CHUNK]
                    self._text = self._text[CHUNK:]
                    self._chunk_at = self._began_at
                    self._began_at = time.monotonic()
                await self._store()
                self._chunk = ""
                self._seq += 1


# Capture of the output that handlers print and log, in the log of their run.
#
# `sys.stdout` and `sys.stderr` of a worker are replaced by routers, and the root logger has a
# handler. A context variable has the run that prints or logs; outside of runs, as for the worker's
# own log, output goes to the original stream.


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
            if line := self._lines.pop(source):
                self._emit(line)

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
                self._waiting = [(source, TRUNCATION_MARK)]
                self._size = len(TRUNCATION_MARK)
        return True

    def _drain(self) -> None:
        with _emptied:
            waiting = self._waiting
            self._waiting = []
            self._size = 0
            _emptied.notify_all()
        for source, text in waiting:
            self._add(source, text)

    def _add(self, source: Source, text: str) -> None:
        *lines, beginning = (self._lines.get(source, "") + text).split("\n")
        if lines:
            self._emit("\n".join(map(_final_text, lines)))
        beginning = _final_text(beginning) if len(beginning) > CHUNK else beginning
        if len(beginning) > CHUNK:
            self._emit(beginning)
            beginning = ""
        self._lines[source] = beginning

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


class _Records(logging.Handler):
    """Writes the records of handlers to the current run's capture; draftsman's own are no part."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        prints = _printing.get()
        if prints is not None and record.name.partition(".")[0] not in OWN:
            try:
                text = self.format(record)
            except Exception:  # of the arguments of the record
                self.handleError(record)
                return
            if prints.write("logging", text + "\n"):
                return
        # without a handler of the program, Python shows warnings
        last = logging.lastResort
        if last and record.levelno >= last.level and logging.getLogger().handlers == [self]:
            last.handle(record)


_routed: list[tuple[_Router, _Router]] = []
_records: Final = _Records()
_users = 0


@contextlib.contextmanager
def route_standard_streams() -> Iterator[None]:
    """Route the standard streams and records of this process until the last such block ends."""
    global _users
    if _users == 0:
        logging.getLogger().addHandler(_records)
        _routed.append((_Router(sys.stdout, "stdout"), _Router(sys.stderr, "stderr")))
        sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", _routed[0])
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        if _users == 0:
            logging.getLogger().removeHandler(_records)
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
