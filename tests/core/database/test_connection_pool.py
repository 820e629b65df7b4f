"""The pool keeps the connection that was last in use for the next caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from psycopg_pool import pool_async
from psycopg_pool._acompat import AEvent

from draftsman.database.database import Connection, Database
from draftsman.database.pinned_connection import Statement, fetch
from draftsman.errors import DatabaseUnreachable
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings
from tests.support.statements import value

PID = "SELECT pg_backend_pid()"
ONE = Statement("SELECT %(n)s::int")
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT $1::int'"


@pytest.fixture
async def small(database_url: str) -> AsyncIterator[Database]:
    """Provide a database with a pool of one connection."""
    db = Database(database_url, DatabaseSettings(pool_size=1), enums=ENUMS)
    await db.open()
    yield db
    await db.close()


async def test_callers_one_after_the_other_have_the_same_connection(small: Database) -> None:
    pids = set()
    for _ in range(5):
        async with small.connection() as conn:
            pids.add(await value(conn, PID))
            assert await fetch(conn, ONE, {"n": 7}) == [(7,)]
    assert len(pids) == 1


async def test_a_caller_that_waits_gets_the_connection(small: Database) -> None:
    async with small.connection() as conn:
        pid = await value(conn, PID)

    async def use() -> int:
        async with small.connection() as conn:
            return int(await value(conn, PID))

    async with small.connection():
        waiting = [asyncio.create_task(use()) for _ in range(3)]
        with pytest.raises(DatabaseUnreachable):
            async with small.connection(wait=0.05):
                raise AssertionError
    assert await asyncio.gather(*waiting) == [pid] * 3


@pytest.mark.parametrize("steps", range(8))
async def test_a_cancellation_that_arrives_with_the_first_connection_counts(
    database_url: str, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    async def use() -> None:
        async with db.connection(), asyncio.timeout(5):
            await asyncio.Event().wait()

    def cancel(steps: int) -> None:
        if steps:
            asyncio.get_running_loop().call_soon(cancel, steps - 1)
        else:
            task.cancel()

    class Filled(AEvent):
        def set(self) -> None:
            super().set()
            cancel(steps)

    db = Database(database_url, DatabaseSettings(), enums=ENUMS, pooled=False)
    await db.open()
    async with db.connection():  # outside the pool, which the second caller opens
        monkeypatch.setattr(pool_async, "AEvent", Filled)
        task = asyncio.create_task(use())
        await asyncio.wait([task])
    await db.close()
    assert task.cancelled()


async def test_an_open_transaction_is_rolled_back(small: Database) -> None:
    async with small.connection() as conn:
        await conn.execute("BEGIN")
        await conn.execute("CREATE TABLE draftsman.mine ()")
    async with small.connection() as conn:
        assert await value(conn, "SELECT to_regclass('draftsman.mine')") is None


async def test_a_kept_connection_that_is_lost_is_replaced(
    small: Database, conn: Connection
) -> None:
    for _ in range(2):
        async with small.connection() as lent:
            pid = await value(lent, PID)
        await conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        async with small.connection() as other:
            assert await value(other, PID) != pid


async def test_a_kept_or_lent_connection_is_closed_with_the_pool(database_url: str) -> None:
    db = Database(database_url, DatabaseSettings(pool_size=2), enums=ENUMS)
    await db.open()
    async with db.connection() as lent:
        async with db.connection() as kept:
            pass
        await db.close()
        assert kept.closed
    assert lent.closed


async def test_a_deallocated_statement_is_prepared_again(small: Database) -> None:
    async with small.connection() as conn:
        assert await fetch(conn, ONE, {"n": 1}) == [(1,)]
        assert await value(conn, PREPARED) == 1
        await conn.execute("DEALLOCATE ALL")  # as psycopg after a rollback
        assert await fetch(conn, ONE, {"n": None}) == [(None,)]
        assert await fetch(conn, ONE, {"n": 4}) == [(4,)]
        assert await value(conn, PREPARED) == 1


async def test_a_statement_in_a_transaction_belongs_to_it(small: Database) -> None:
    async with small.connection() as conn:
        assert await fetch(conn, ONE, {"n": 1}) == [(1,)]
        await conn.execute("DEALLOCATE ALL")
        async with conn.transaction():
            assert await fetch(conn, ONE, {"n": 2}) == [(2,)]
            assert await value(conn, "SELECT 3") == 3
