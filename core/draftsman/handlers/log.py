"""The log of one run: written at once, stored in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from draftsman.domain.run import Lease
from draftsman.errors import DraftsmanError, LeaseLost
from draftsman.services.checkpoint import Checkpoints

CHUNK: Final = 64 * 1024
"""Characters of a stored piece, at most."""
DELAY: Final = 1.0
"""Seconds that a line may wait for company."""
KEPT: Final = 16 * CHUNK
"""Characters that wait while the database is away; what is older is dropped, and said so."""
PATIENCE: Final = 10.0
"""Seconds that a fast writer waits for the database before its text is bounded."""
CUT: Final = "[... the log was cut here]\n"
_log = logging.getLogger(__name__)


class RunLog:
    """Buffers what a run says and appends it to `run_log_chunks`, in order."""

    def __init__(self, checkpoints: Checkpoints, lease: Lease) -> None:
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

    async def room(self) -> None:
        """Wait while much is on its way, so that a fast writer is slowed down and loses nothing."""
        if len(self._text) > 2 * CHUNK:
            with contextlib.suppress(TimeoutError, DraftsmanError):
                async with asyncio.timeout(PATIENCE):
                    await self._flush()

    def append(self, text: str) -> None:
        """Take a piece of text as it is."""
        self._text += text
        if len(self._text) > KEPT:
            self._text = CUT + self._text[-KEPT // 2 :]
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
                await self._checkpoints.log(self._lease, self._seq, self._piece)
                self._piece = ""
                self._seq += 1
