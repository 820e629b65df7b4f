"""The worker's ear: notifications that save a wait. Polling is the truth; this is a hint."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.errors import DatabaseUnreachable
from draftsman.loops.loop import Stop
from draftsman.loops.worker import Worker
from draftsman.store.db import Connection, Database, translated
from draftsman.store.notify import listen, notifications

RECONNECT: Final = 2.0
"""Seconds between two tries to listen again."""


class Ear:
    """Keeps one session connection: it carries the notifications and the worker's lock."""

    def __init__(
        self,
        worker: Worker,
        db: Database,
        url: str | None,
        hold: Callable[[Connection], Awaitable[None]],
        deliver: Callable[[str], None],
    ) -> None:
        self.stop = Stop()
        self.holding = False
        """Whether the session lock speaks for the worker."""
        self._worker = worker
        self._db = db
        self._url = url
        self._hold = hold
        self._deliver = deliver

    async def run(self) -> None:
        """Listen until stopped; connect again when the connection goes."""
        while not self.stop:
            listening = asyncio.ensure_future(self._listen())
            stopping = asyncio.ensure_future(self.stop.wait(math.inf))
            await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (listening, stopping):
                task.cancel()
            ended, _ = await asyncio.gather(listening, stopping, return_exceptions=True)
            self.holding = False
            if isinstance(ended, Exception) and not isinstance(ended, DatabaseUnreachable):
                raise ended
            await self.stop.wait(RECONNECT)

    async def _listen(self) -> None:
        connection = await self._db.dedicated(self._url)
        try:
            with translated():
                await self._hold(connection)
                self.holding = True
                await listen(connection)
                self._worker.wake()
                self._deliver("")
                async for channel, payload in notifications(connection):
                    self._hear(channel, payload)
        finally:
            await connection.close()

    def _hear(self, channel: str, payload: str) -> None:
        if channel == "draftsman_jobs":
            self._worker.tell()
        elif channel == "draftsman_deliveries":
            self._deliver(payload)
        elif payload.isdigit():
            self._worker.cancel(int(payload))
