"""Listener for database notifications, which shorten waits; polling guarantees progress."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

from psycopg import OperationalError

from draftsman.database.database import Connection, Database, translate_errors
from draftsman.database.named_queries import load
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman.processes.lifecycle import StopSignal

# LISTEN and NOTIFY on a dedicated session.


PROBE_INTERVAL: Final = 10.0
"""Seconds between two probes of a connection that waits for notifications."""
PROBE_TIMEOUT: Final = 5.0
"""Seconds in which the server must reply to a probe."""
_Q = load("draftsman.database.schema")


OnNotification = Callable[[str, str], None]
"""Gets the channel and the payload of a notification."""


async def listen(conn: Connection, on_notification: OnNotification) -> None:
    """Listen for claimable jobs (`draftsman_jobs`) and runs to stop (`draftsman_runs`).

    Also for due deliveries, with the channel as payload (`draftsman_deliveries`). From now on,
    `on_notification` gets what arrives with the replies to other statements; `receive` reads the
    rest.
    """
    conn.add_notify_handler(lambda notice: on_notification(notice.channel, notice.payload))
    await conn.execute(_Q["listen"])


async def receives_notifications(conn: Connection, seconds: float) -> bool:
    """Return whether a notification sent on this connection arrives within `seconds`."""
    await conn.execute(_Q["listen"])
    await conn.execute(_Q["wake"])
    async for _ in conn.notifies(timeout=seconds, stop_after=1):
        return True
    return False


async def receive(
    conn: Connection, on_notification: OnNotification, seconds: float | None = None
) -> None:
    """Pass channel and payload of each notification for `seconds`; None: without end.

    Raises psycopg's error when the connection is lost.

    The event loop calls `on_notification` as soon as it reads the socket, without a task between:
    an idle worker claims a new job some tenths of a millisecond earlier. An idle connection is
    probed: its server may have vanished.
    """
    loop = asyncio.get_running_loop()
    pgconn = conn.pgconn
    codec = conn.info.encoding
    lost: asyncio.Future[None] = loop.create_future()
    replied = asyncio.Event()
    ends_at = None if seconds is None else loop.time() + seconds

    def remaining(limit: float) -> float:
        return limit if ends_at is None else max(0.0, min(limit, ends_at - loop.time()))

    def read() -> None:
        try:
            pgconn.consume_input()
            while notice := pgconn.notifies():
                on_notification(notice.relname.decode(codec), notice.extra.decode(codec))
            while not pgconn.is_busy() and pgconn.get_result() is not None:
                replied.set()
        except Exception as error:
            loop.remove_reader(socket)
            if not lost.done():
                lost.set_exception(error)

    async with conn.lock:
        socket = pgconn.socket
        loop.add_reader(socket, read)
        try:
            read()  # notifications that arrived with an earlier reply
            while not (await asyncio.wait({lost}, timeout=remaining(PROBE_INTERVAL)))[0]:
                if remaining(PROBE_INTERVAL) == 0:
                    return
                replied.clear()
                pgconn.send_query(b"")
                pgconn.flush()
                waiting = asyncio.ensure_future(replied.wait())
                futures: set[asyncio.Future[Any]] = {lost, waiting}
                await asyncio.wait(
                    futures, timeout=PROBE_TIMEOUT, return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
                if not replied.is_set() and not lost.done():
                    raise OperationalError(f"no reply from the server within {PROBE_TIMEOUT:.0f} s")
            await lost
        finally:
            loop.remove_reader(socket)


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
