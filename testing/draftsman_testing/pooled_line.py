"""A worker's session without a connection of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from draftsman.database.database import Connection, DedicatedSession


class PooledLine(DedicatedSession):
    """A worker's session that belongs to the pool of the test."""

    @asynccontextmanager
    async def connection(self, wait: float) -> AsyncIterator[Connection]:
        """Lend a connection of the pool."""
        async with self._db.connection(wait) as conn:
            yield conn
