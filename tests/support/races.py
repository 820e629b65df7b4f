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

from draftsman.runtime import Runtime, wire
from draftsman.store.postgres.database import Connection, Database, DedicatedSession
from tests.support.waits import DEADLINE, background, wait_blocked

T = TypeVar("T")


class PooledLine(DedicatedSession):
    """A worker's own session that is one of the pool's, with all that the pool does in a test."""

    @asynccontextmanager
    async def connection(self, wait: float) -> AsyncIterator[Connection]:
        """Lend a connection of the pool."""
        async with self._db.connection(wait) as conn:
            yield conn


class HeldDatabase(Database):
    """A database whose transactions stay open, done and not committed, until they are let go."""

    def dedicated_session(self, *, pinned: bool = True) -> DedicatedSession:
        """Return a session that is held like any other."""
        return PooledLine(self, pinned=pinned)

    def hold(self) -> None:
        """Hold the next transaction."""
        self.pid = 0
        self._done, self._let_go = asyncio.Event(), asyncio.Event()

    async def done(self) -> None:
        """Wait until the held transaction has done all that it does."""
        await self._done.wait()

    def let_go(self) -> None:
        """Let it commit, and hold no other."""
        self._let_go.set()

    @asynccontextmanager
    async def connection(self, wait: float | None = None) -> AsyncIterator[Connection]:
        """Lend a connection inside a transaction that waits before it commits."""
        async with super().connection(wait) as conn, conn.transaction():
            yield conn
            self.pid = conn.info.backend_pid
            self._done.set()
            await self._let_go.wait()


class FirstSession:
    """The session that is there first."""

    def __init__(self, rt: Runtime, db: HeldDatabase) -> None:
        self.rt = rt
        self._db = db

    @property
    def pid(self) -> int:
        """The backend that holds what was done."""
        return self._db.pid

    @asynccontextmanager
    async def doing(self, work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
        """Do this and hold it uncommitted; it commits at the end of the block at the latest."""
        self._db.hold()
        async with background(work) as task:
            async with background(self._db.done()) as done:
                await _either(task, done)
                if task.done():
                    task.result()
                assert done.done(), "it neither ended nor came to its commit"
            yield task
            self.commit()
            await task

    async def reopen(self) -> None:
        """Begin new sessions, which see the clock that a test has moved."""
        await self._db.close()
        await self._db.open()

    def commit(self) -> None:
        """Let the held work commit now."""
        self._db.let_go()

    async def then(self, work: Awaitable[T], watch: Connection, sessions: int = 1) -> T:
        """Start this, see that it waits for what is held, let that commit; return its result.

        That it waits is what PostgreSQL says, through the session `watch`.
        """
        async with background(work) as task:
            async with background(
                wait_blocked(watch, by=self._db.pid, sessions=sessions)
            ) as waiting:
                await _either(task, waiting)
                assert waiting.done(), f"it did not wait but ended: {_ended(task)}"
                await waiting
            self.commit()
            async with asyncio.timeout(DEADLINE):
                return await task


async def _either(one: asyncio.Future[Any], other: asyncio.Future[Any]) -> None:
    await asyncio.wait({one, other}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)


def _ended(task: asyncio.Future[Any]) -> object:
    return task.exception() or task.result()


@asynccontextmanager
async def hold_commits(rt: Runtime) -> AsyncIterator[FirstSession]:
    """Open a second pool on the database of `rt` and the services over it."""
    db = HeldDatabase(rt.db.url, rt.settings.database)
    await db.open()
    try:
        yield FirstSession(wire(rt.settings, db, rt.embedded), db)
    finally:
        await db.close()
