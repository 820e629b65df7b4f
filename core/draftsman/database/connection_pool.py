"""Pool of connections, for a process that uses several at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from draftsman.database.connection_state import cancellations, is_disconnected
from draftsman.database.database_connection import DatabaseConnection
from draftsman.settings.database import DatabaseSettings

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext

RECONNECT_TIMEOUT: Final = 2.0
"""Seconds of reconnecting in the background: then the next caller that needs a connection
reconnects at once, instead of waiting for a backoff that grows to a minute."""
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class ConnectionPool:
    """Connections that are opened when they are needed, up to `pool_size`.

    The last connection in use is kept for the next caller: a client that submits jobs one by one
    has always the same, and psycopg's pool takes longer to lend one than a short statement takes.
    """

    def __init__(
        self,
        parameters: str,
        settings: DatabaseSettings,
        connection_class: type[DatabaseConnection],
        *,
        context: AdaptContext,
        configure: Callable[[DatabaseConnection], Awaitable[None]],
        is_left_over: Callable[[DatabaseConnection], bool],
    ) -> None:
        """`is_left_over` says whether a connection is to be replaced before its next use."""
        self._pool: AsyncConnectionPool[DatabaseConnection] = AsyncConnectionPool(
            parameters,
            connection_class=connection_class,
            min_size=1,
            max_size=settings.pool_size,
            timeout=settings.connect_timeout,
            kwargs={"autocommit": True, "context": context},
            configure=configure,
            reconnect_timeout=RECONNECT_TIMEOUT,
            open=False,
        )
        self._is_left_over = is_left_over
        self._spare: DatabaseConnection | None = None
        self._waiting = 0

    async def open(self, timeout: float) -> None:
        """Open the first connection; raises PoolTimeout and closes the pool on failure."""
        before = cancellations()
        try:  # a request before the pool is filled would open a second connection
            await self._pool.open(wait=True, timeout=timeout)
            if cancellations() > before:  # the pool ignores a cancellation that arrives with it
                raise asyncio.CancelledError
        except BaseException:
            await self._pool.close()
            raise

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        await self._pool.close()
        connection = self._spare
        self._spare = None
        if connection is not None:
            await self._pool.putconn(connection)

    @asynccontextmanager
    async def connection(self, wait: float | None) -> AsyncIterator[DatabaseConnection]:
        """Lend a connection; raises PoolTimeout when none is free within `wait` seconds."""
        conn = self._spare
        self._spare = None
        if conn is None or is_disconnected(conn) or self._is_left_over(conn):
            conn = await self._replace(conn, wait)
        try:
            yield conn
        finally:
            await self._put_back(conn)

    async def _put_back(self, conn: DatabaseConnection) -> None:
        """Keep the connection, or return it; the pool ends a transaction that was left open."""
        idle = conn.pgconn.transaction_status == TransactionStatus.IDLE
        if idle and self._spare is None and not self._waiting and not self._pool.closed:
            self._spare = conn
        else:
            await self._pool.putconn(conn)

    async def _replace(
        self, lost: DatabaseConnection | None, wait: float | None
    ) -> DatabaseConnection:
        """Get a connection of the pool, after the return of one that cannot be used."""
        self._waiting += 1
        try:
            if lost is not None:
                await self._discard(lost)
            return await self._get_live(wait)
        finally:
            self._waiting -= 1

    async def _get_live(self, wait: float | None) -> DatabaseConnection:
        """Get a connection of the pool; replace disconnected connections at once.

        The pool's own check waits a second after the first of them, then two, then four. A session
        that was opened for this call is used also if its server is read-only.
        """
        before = cancellations()
        began = monotonic()
        conn = await self._pool.getconn(timeout=wait)
        while is_disconnected(conn) or (self._is_left_over(conn) and conn.opened_at < began):
            await self._discard(conn)
            conn = await self._pool.getconn(timeout=wait)
        if cancellations() > before:  # the pool ignores a cancellation that arrives with it
            await self._pool.putconn(conn)
            raise asyncio.CancelledError
        return conn

    async def _discard(self, conn: DatabaseConnection) -> None:
        try:
            await conn.close()
        finally:
            await self._pool.putconn(conn)
