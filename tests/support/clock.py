"""Movable clocks: that of a database, and that of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, time, timedelta
from typing import Final

from draftsman.database.database import Connection, Database, scalar
from draftsman_testing.waits import until
from tests.support import shifted_clock
from tests.support.server import Server

NOW: Final = "SELECT draftsman.now()"
SENDING: Final = "SELECT count(*) FROM draftsman.deliveries WHERE status = 'sending'"


class Clock:
    """Moves `draftsman.now()` of a database forward; never the clock of events."""

    def __init__(self, db: Database, server: Server, name: str) -> None:
        self._db = db
        self._server = server
        self._name = name
        self._offset = shifted_clock.offset()
        self._lend = db.connection
        self._lends = 0
        self._lent = 0
        self._count_lent_connections()

    async def forward(self, seconds: float, *, while_in_flight: bool = False) -> None:
        """Move it for all new sessions, also of the pool, which gets new sessions.

        Waits until no task uses the database and no delivery is being sent: what began before the
        move would end with an expired lease, and be done again. A test of expired leases moves
        the clock `while_in_flight`.
        """
        if not while_in_flight:
            await self._wait_until_idle()
        self._offset += seconds
        self._server.set(self._name, "draftsman.clock_offset", self._interval)
        await self._db.close()
        await self._db.open()

    async def now(self) -> datetime:
        """Return the time of the database in UTC; that of this machine may differ."""
        async with self._lend() as conn:
            now: datetime = await scalar(conn, NOW)
            return now.astimezone(UTC)

    async def forward_to(self, moment: datetime) -> None:
        """Move it to a moment, exactly: no time passes between this and the next statement."""
        await self.forward((moment - await self.now()).total_seconds())

    async def past_the_hour(self, hour: int | None = None) -> datetime:
        """Move it to a minute after the next hour, or the next such hour of the day in UTC.

        For a test whose result depends on the hour: what it adds afterwards is due in the same
        hour, however late the test began.
        """
        now = await self.now()
        moment = datetime.combine(now, time(now.hour if hour is None else hour, 1), UTC)
        step = timedelta(hours=1) if hour is None else timedelta(days=1)
        moment += step * (moment <= now)
        await self.forward_to(moment)
        return moment

    async def tell(self, conn: Connection) -> None:
        """Move it for an open session."""
        await conn.execute(
            "SELECT set_config('draftsman.clock_offset', %s, false)", (self._interval,)
        )

    @property
    def _interval(self) -> str:
        return f"{self._offset} seconds"

    async def _wait_until_idle(self) -> None:
        """Return in the same step of the event loop in which nothing was in flight."""

        async def is_idle() -> bool:
            before = self._lends
            if self._is_used():
                return False
            async with self._lend() as conn:
                sending = await scalar(conn, SENDING)
            return sending == 0 and self._lends == before and not self._is_used()

        await until(is_idle, "no task that uses the database and no delivery being sent")

    def _is_used(self) -> bool:
        return self._lent > 0 or any(session._lent.locked() for session in self._db._sessions)

    def _count_lent_connections(self) -> None:
        @asynccontextmanager
        async def connection(wait: float | None = None) -> AsyncIterator[Connection]:
            self._lends += 1
            self._lent += 1
            try:
                async with self._lend(wait) as conn:
                    yield conn
            finally:
                self._lent -= 1

        self._db.connection = connection  # type: ignore[method-assign]


def skip(seconds: float) -> None:
    """Advance the clock of this test's event loop; everything due until then runs at once."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]
