"""The log of a run, buffered and stored in chunks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Final

from draftsman.errors import DraftsmanError, LeaseLost
from draftsman.ids import job_name
from draftsman.jobs.runs.run import Lease
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.settings import QuotaSettings

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
        self, checkpoints: Checkpoints, lease: Lease, quotas: QuotaSettings | None = None
    ) -> None:
        self._quotas = quotas or QuotaSettings()
        self._bytes_left = self._quotas.log_bytes
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
        self._text += self._within(text)
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
        self._bytes_left, self._text = 0, ""

    async def _write(self) -> None:
        while self._chunk or self._text:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DELAY):
                    await self._full.wait()
            self._full.clear()
            try:
                await asyncio.shield(asyncio.ensure_future(self._flush()))
            except LeaseLost:
                self._chunk = self._text = ""
            except DraftsmanError as error:
                _log.warning(
                    "cannot store the log of %s, retrying: %s", job_name(self._lease.job), error
                )

    async def _flush(self) -> None:
        async with self._store_lock:
            while self._chunk or self._text:
                if not self._chunk:
                    self._chunk, self._text = self._text[:CHUNK], self._text[CHUNK:]
                    self._chunk_at, self._began_at = self._began_at, time.monotonic()
                await self._store()
                self._chunk = ""
                self._seq += 1
