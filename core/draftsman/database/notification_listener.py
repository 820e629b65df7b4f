"""Listener for database notifications, which shorten waits; polling guarantees progress."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.database.database import Connection, Database, translate_errors
from draftsman.database.notifications import OnNotification, listen, receive
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.processes.lifecycle import StopSignal

RECONNECT: Final = 2.0
"""Reconnect interval, in seconds."""
LOCK_RETRY: Final = 1.0
"""Seconds between attempts to acquire a session lock that an earlier session still holds."""
_log = logging.getLogger(__name__)


class NotificationListener:
    """Keeps a session that receives notifications and holds a worker's session lock.

    `on_notification` is called with the channel and payload of each notification. Two empty strings
    say that listening has started, and that earlier notifications were missed. It listens before it
    has the lock: the server may keep an earlier session, and its lock, for minutes after the
    connection was lost. `hold` acquires the lock, and returns False as long as it is not free.
    """

    def __init__(
        self,
        db: Database,
        on_notification: OnNotification,
        hold: Callable[[Connection], Awaitable[bool]] | None = None,
    ) -> None:
        self.stop = StopSignal()
        self.lock_held = False
        """Whether the session lock is held."""
        self._db = db
        self._on_notification = on_notification
        self._hold = hold
        self._reported = ""

    async def run(self) -> None:
        """Listen until stopped; reconnect when the connection is lost."""
        while not self.stop:
            listening = asyncio.ensure_future(self._listen())
            stopping = asyncio.ensure_future(self.stop.wait(math.inf))
            await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for task in (listening, stopping):
                task.cancel()
            result, _ = await asyncio.gather(listening, stopping, return_exceptions=True)
            self.lock_held = False
            if isinstance(result, Exception):
                self._report(result)
            await self.stop.wait(RECONNECT)

    def _report(self, error: Exception) -> None:
        """Log an error that is no outage, once; raise it unless it is of the database."""
        if not isinstance(error, DraftsmanError):
            raise error
        if not isinstance(error, DatabaseUnreachable) and str(error) != self._reported:
            self._reported = str(error)
            _log.warning("no notifications, retrying: %s", error)

    async def _listen(self) -> None:
        connection = await self._db.dedicated_connection()
        try:
            with translate_errors():
                await listen(connection, self._on_notification)
                await self._acquire_lock(connection)
                self._on_notification("", "")
                while self._hold is not None and not self.lock_held:
                    await receive(connection, self._on_notification, LOCK_RETRY)
                    await self._acquire_lock(connection)
                await receive(connection, self._on_notification)
        finally:
            await connection.close()

    async def _acquire_lock(self, connection: Connection) -> None:
        if self._hold is not None:
            self.lock_held = await self._hold(connection)
