"""Two real sessions: the first has done its work and not committed it, the second comes in between.

async with holding(rt) as first:
    async with first.doing(first.rt.operate.cancel(1, anna)) as canceled:  # holds its locks
        verdict = await first.then(rt.questions.answer(...), watch)  # waits, then goes on
    assert canceled.result()...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from draftsman.database.database import Connection, Database, DedicatedSession
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman_testing.pooled_line import PooledLine
from draftsman_testing.waits import DEADLINE, background, wait_blocked

T = TypeVar("T")


class HeldDatabase(Database):
    """A database whose transactions stay open after their last statement until release."""

    def dedicated_session(
        self, *, pinned: bool = True, lease: float | None = None
    ) -> DedicatedSession:
        """Return a session that is held like any other."""
        return PooledLine(self, pinned=pinned, lease=lease)

    def hold(self) -> None:
        """Hold the next transaction."""
        self.pid = 0
        self._done = asyncio.Event()
        self._let_go = asyncio.Event()

    async def done(self) -> None:
        """Wait until the held transaction has run all its statements."""
        await self._done.wait()

    def let_go(self) -> None:
        """Commit it, and hold no other."""
        self._let_go.set()

    @asynccontextmanager
    async def connection(self, wait: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection in a transaction that waits before it commits, unless it only reads."""
        async with super().connection(wait) as conn, conn.transaction():
            yield conn
            cursor = await conn.execute("SELECT pg_current_xact_id_if_assigned() IS NULL")
            if (await cursor.fetchall())[0][0]:
                return
            self.pid = conn.info.backend_pid
            self._done.set()
            await self._let_go.wait()


class FirstSession:
    """The first of two sessions."""

    def __init__(self, rt: Runtime, db: HeldDatabase) -> None:
        self.rt = rt
        self._db = db

    @property
    def pid(self) -> int:
        """The backend with the held transaction."""
        return self._db.pid

    @asynccontextmanager
    async def doing(self, work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
        """Run a coroutine and hold its transaction until `commit` or the end of the block."""
        self._db.hold()
        async with background(work) as task:
            async with background(self._db.done()) as done:
                await _first_done(task, done)
                if task.done():
                    task.result()
                assert done.done(), "it neither ended nor came to its commit"
            yield task
            self.commit()
            await task

    async def reopen(self) -> None:
        """Open new sessions, which use the moved clock."""
        await self._db.close()
        await self._db.open()

    def commit(self) -> None:
        """Commit the held transaction now."""
        self._db.let_go()

    async def then(self, work: Awaitable[T], watch: Connection, sessions: int = 1) -> T:
        """Start a second operation, check that it is blocked, and commit the first.

        The session `watch` asks PostgreSQL whether it is blocked.
        """
        async with background(work) as task:
            async with background(
                wait_blocked(watch, by=self._db.pid, sessions=sessions)
            ) as waiting:
                await _first_done(task, waiting)
                assert waiting.done(), f"it did not wait but ended: {_ended(task)}"
                await waiting
            self.commit()
            async with asyncio.timeout(DEADLINE):
                return await task


async def _first_done(first: asyncio.Future[Any], second: asyncio.Future[Any]) -> None:
    await asyncio.wait({first, second}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)


def _ended(task: asyncio.Future[Any]) -> object:
    return task.exception() or task.result()


@asynccontextmanager
async def hold_commits(rt: Runtime) -> AsyncIterator[FirstSession]:
    """Open a second pool on the database of `rt` and the services over it."""
    db = HeldDatabase(rt.db.url, rt.settings.database, enums=ENUMS)
    await db.open()
    try:
        yield FirstSession(wire(rt.settings, db, rt.embedded), db)
    finally:
        await db.close()
