"""LISTEN and NOTIFY on a dedicated session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from draftsman.store.postgres.database import Connection
from draftsman.store.queries import load

_Q = load("schema")


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
    an idle worker claims a new job some tenths of a millisecond earlier.
    """
    loop, pgconn, codec = asyncio.get_running_loop(), conn.pgconn, conn.info.encoding
    lost: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            pgconn.consume_input()
            while notice := pgconn.notifies():
                on_notification(notice.relname.decode(codec), notice.extra.decode(codec))
        except Exception as error:
            loop.remove_reader(socket)
            if not lost.done():
                lost.set_exception(error)

    async with conn.lock:
        socket = pgconn.socket
        loop.add_reader(socket, read)
        try:
            read()  # notifications that arrived with an earlier reply
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await lost
        finally:
            loop.remove_reader(socket)
