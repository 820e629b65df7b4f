"""Pool of connections, for a process that uses several at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from draftsman.settings import DatabaseSettings
from draftsman.store.postgres.connection_state import cancellations, is_disconnected

RECONNECT_TIMEOUT: Final = 2.0
"""Seconds of reconnecting in the background: then the next caller that needs a connection
reconnects at once, instead of waiting for a backoff that grows to a minute."""
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class ConnectionPool:
    """Connections that are opened when they are needed, up to `pool_size`."""

    def __init__(
        self,
        url: str,
        settings: DatabaseSettings,
        options: dict[str, Any],
        configure: Callable[[AsyncConnection[Any]], Awaitable[None]],
    ) -> None:
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            url,
            min_size=1,
            max_size=settings.pool_size,
            timeout=settings.connect_timeout,
            kwargs=options,
            configure=configure,
            reconnect_timeout=RECONNECT_TIMEOUT,
            open=False,
        )

    async def open(self, timeout: float) -> None:
        """Open the first connection; raises PoolTimeout and closes the pool on failure."""
        try:  # a request before the pool is filled would open a second connection
            await self._pool.open(wait=True, timeout=timeout)
        except BaseException:
            await self._pool.close()
            raise

    async def close(self) -> None:
        """Close all connections; safe to call twice."""
        await self._pool.close()

    @asynccontextmanager
    async def connection(self, wait: float | None) -> AsyncIterator[AsyncConnection[Any]]:
        """Lend a connection; raises PoolTimeout when none is free within `wait` seconds."""
        conn = await self._get_live(wait)
        try:
            async with conn:
                yield conn
        finally:
            await self._pool.putconn(conn)

    async def _get_live(self, wait: float | None) -> AsyncConnection[Any]:
        """Get a connection of the pool; replace disconnected connections at once.

        The pool's own check waits a second after the first of them, then two, then four.
        """
        before = cancellations()
        while is_disconnected(conn := await self._pool.getconn(timeout=wait)):
            try:
                await conn.close()
            finally:
                await self._pool.putconn(conn)
        if cancellations() > before:  # the pool ignores a cancellation that arrives with it
            await self._pool.putconn(conn)
            raise asyncio.CancelledError
        return conn
