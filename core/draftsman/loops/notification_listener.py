"""A process's ear: notifications that save a wait. Polling is the truth; this is a hint."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.errors import DatabaseUnreachable
from draftsman.loops.lifecycle import StopSignal
from draftsman.store.postgres.database import Connection, Database, translate_errors
from draftsman.store.postgres.notifications import listen, notifications

RECONNECT: Final = 2.0
"""Seconds between two tries to listen again."""


class NotificationListener:
    """Keeps one session connection, which carries the notifications, and a worker's lock.

    `hear` gets each notification, its channel and its payload; two empty texts say that it listens
    from now on, and that what came before was not heard.
    """

    def __init__(
        self,
        db: Database,
        url: str | None,
        hear: Callable[[str, str], None],
        hold: Callable[[Connection], Awaitable[None]] | None = None,
    ) -> None:
        self.stop = StopSignal()
        self.lock_held = False
        """Whether the session lock speaks for the worker."""
        self._db = db
        self._url = url
        self._hear = hear
        self._hold = hold

    async def run(self) -> None:
        """Listen until stopped; connect again when the connection goes."""
        while not self.stop:
            listening = asyncio.ensure_future(self._listen())
            stopping = asyncio.ensure_future(self.stop.wait(math.inf))
            await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (listening, stopping):
                task.cancel()
            ended, _ = await asyncio.gather(listening, stopping, return_exceptions=True)
            self.lock_held = False
            if isinstance(ended, Exception) and not isinstance(ended, DatabaseUnreachable):
                raise ended
            await self.stop.wait(RECONNECT)

    async def _listen(self) -> None:
        connection = await self._db.dedicated_connection(self._url)
        try:
            with translate_errors():
                if self._hold is not None:
                    await self._hold(connection)
                    self.lock_held = True
                await listen(connection)
                self._hear("", "")
                async for channel, payload in notifications(connection):
                    self._hear(channel, payload)
        finally:
            await connection.close()
