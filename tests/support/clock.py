"""Movable clocks: that of a database, and that of an event loop."""

from __future__ import annotations

import asyncio

from draftsman.store.postgres.database import Connection, Database
from tests.support.server import Server


class Clock:
    """Moves `draftsman.now()` of a database forward; never the clock of events."""

    def __init__(self, db: Database, server: Server, name: str) -> None:
        self._db = db
        self._server = server
        self._name = name
        self._offset = 0.0

    async def forward(self, seconds: float) -> None:
        """Move it for all new sessions, also of the pool, which gets new sessions."""
        self._offset += seconds
        self._server.set(self._name, "draftsman.clock_offset", self._interval)
        await self._db.close()
        await self._db.open()

    async def tell(self, conn: Connection) -> None:
        """Move it for an open session."""
        await conn.execute(
            "SELECT set_config('draftsman.clock_offset', %s, false)", (self._interval,)
        )

    @property
    def _interval(self) -> str:
        return f"{self._offset} seconds"


def skip(seconds: float) -> None:
    """Advance the clock of this test's event loop; everything due until then runs at once."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]
