"""The log of one run: written at once, stored in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from draftsman.domain.run import Lease
from draftsman.errors import DraftsmanError, LeaseLost
from draftsman.services.runs.checkpoints import Checkpoints
from draftsman.settings import QuotaSettings

CHUNK: Final = 64 * 1024
"""Characters of a stored piece, at most."""
DELAY: Final = 1.0
"""Seconds that a line may wait for company."""
BUFFER_LIMIT: Final = 16 * CHUNK
"""Characters that wait while the database is away; what is older is dropped, and said so."""
ROOM_TIMEOUT: Final = 10.0
"""Seconds that a fast writer waits for the database before its text is bounded."""
TRUNCATION_MARK: Final = "[... the log was cut here]\n"
QUOTA_MARK: Final = "[... the log ends here: {:,} bytes are kept for a {} ([quotas] {})]\n"
QUOTA_MARK_BYTES: Final = 200
"""Bytes that the line about the end may take, beyond the limit."""
_log = logging.getLogger(__name__)


class RunLog:
    """Buffers what a run says and appends it to `run_log_chunks`, in order.

    What is over a quota is left out; the last line says so.
    """

    def __init__(
        self, checkpoints: Checkpoints, lease: Lease, quotas: QuotaSettings | None = None
    ) -> None:
        self._quotas = quotas or QuotaSettings()
        self._left = self._quotas.log_bytes
        self._checkpoints = checkpoints
        self._lease = lease
        self._text = ""
        self._piece = ""  # on its way: the same again until it is known to be stored
        self._seq = 0
        self._storing = asyncio.Lock()
        self._full = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    def write(self, text: str) -> None:
        """Take a line, or several; the last one gets its end."""
        self.append(text if text.endswith("\n") else text + "\n")

    async def wait_for_room(self) -> None:
        """Wait while much is on its way, so that a fast writer is slowed down and loses nothing."""
        if len(self._text) > 2 * CHUNK:
            with contextlib.suppress(TimeoutError, DraftsmanError):
                async with asyncio.timeout(ROOM_TIMEOUT):
                    await self._flush()

    def append(self, text: str) -> None:
        """Take a piece of text as it is."""
        self._text += self._within(text)
        if len(self._text) > BUFFER_LIMIT:
            self._text = TRUNCATION_MARK + self._text[-BUFFER_LIMIT // 2 :]
        if len(self._text) >= CHUNK:
            self._full.set()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Store what is left; a run that lost its job stores nothing."""
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer
        with contextlib.suppress(LeaseLost):
            await self._flush()

    def _within(self, text: str) -> str:
        """Return what of a text the run's quota leaves, and once the line that ends the log."""
        if self._left <= 0:
            return ""
        data = text.encode("utf-8", "replace")
        if len(data) <= self._left:
            self._left -= len(data)
            return text
        kept = data[: self._left].decode("utf-8", "ignore")
        self._left = 0
        end = QUOTA_MARK.format(self._quotas.log_bytes, "run", "log_bytes")
        return kept + ("" if kept.endswith("\n") or not kept else "\n") + end

    async def _store(self) -> None:
        """Store a piece; where the job's quota is over, store that once, and nothing more."""
        most = self._quotas.job_log_bytes
        if await self._checkpoints.log(self._lease, self._seq, self._piece, most):
            return
        end = QUOTA_MARK.format(most, "job", "job_log_bytes")
        await self._checkpoints.log(self._lease, self._seq, end, most + QUOTA_MARK_BYTES)
        self._left, self._text = 0, ""

    async def _write(self) -> None:
        while self._piece or self._text:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DELAY):
                    await self._full.wait()
            self._full.clear()
            try:
                await asyncio.shield(asyncio.ensure_future(self._flush()))
            except LeaseLost:
                self._piece = self._text = ""
            except DraftsmanError as error:
                _log.warning("log of D-%s not stored yet: %s", self._lease.job, error)

    async def _flush(self) -> None:
        async with self._storing:
            while self._piece or self._text:
                if not self._piece:
                    self._piece, self._text = self._text[:CHUNK], self._text[CHUNK:]
                await self._store()
                self._piece = ""
                self._seq += 1
