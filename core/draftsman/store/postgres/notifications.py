"""LISTEN and NOTIFY on a dedicated session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from psycopg import OperationalError

from draftsman.store.postgres.database import Connection
from draftsman.store.queries import load

PROBE_INTERVAL: Final = 10.0
"""Seconds between two probes of a connection that waits for notifications."""
PROBE_TIMEOUT: Final = 5.0
"""Seconds in which the server must reply to a probe."""
_Q = load("schema")


async def listen(conn: Connection) -> None:
    """Listen for claimable jobs (`draftsman_jobs`) and runs to stop (`draftsman_runs`).

    Also for due deliveries, with the channel as payload (`draftsman_deliveries`).
    """
    await conn.execute(_Q["listen"])


async def receives_notifications(conn: Connection, seconds: float) -> bool:
    """Return whether a notification sent on this connection arrives within `seconds`."""
    await conn.execute(_Q["listen"])
    await conn.execute(_Q["wake"])
    async for _ in conn.notifies(timeout=seconds, stop_after=1):
        return True
    return False


async def receive(conn: Connection, on_notification: Callable[[str, str], None]) -> None:
    """Pass channel and payload of each notification, until the connection is lost.

    The event loop calls `on_notification` as soon as it reads the socket, without a task between:
    an idle worker claims a new job some tenths of a millisecond earlier. An idle connection is
    probed: its server may have vanished.
    """
    loop, pgconn, codec = asyncio.get_running_loop(), conn.pgconn, conn.info.encoding
    lost: asyncio.Future[None] = loop.create_future()
    replied = asyncio.Event()

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
            read()  # notifications that arrived with the reply to LISTEN
            while not (await asyncio.wait({lost}, timeout=PROBE_INTERVAL))[0]:
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
