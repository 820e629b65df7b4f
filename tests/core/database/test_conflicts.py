"""Deadlocks and serialization failures, and sessions that began on a read-only server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psycopg
import pytest

from draftsman.database.database import Connection, Database
from draftsman.database.database_connection import CONFLICT_RETRIES, TransactionConflict
from draftsman.database.pinned_connection import Statement, fetch
from draftsman.errors import LostRace, Refused
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings
from tests.support.server import Server
from tests.support.statements import run, value

FAILING = """
CREATE SCHEMA trial;
CREATE SEQUENCE trial.calls;
CREATE FUNCTION trial.fail(times int, state text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE call bigint := nextval('trial.calls');
BEGIN
    IF call <= times THEN
        RAISE 'a conflict' USING ERRCODE = state;
    END IF;
    RETURN call;
END $$
"""
"""A function whose first calls fail: a rollback does not reset a sequence."""
FAIL = "SELECT trial.fail(%(times)s::int, %(state)s::text)"
Lend = Callable[[], AbstractAsyncContextManager[Connection]]


@pytest.fixture
async def lenders(server: Server, own_database: str) -> AsyncIterator[list[Lend]]:
    """Provide connections of each kind."""
    url = server.url(own_database)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as admin:
        await admin.execute(FAILING)
    async with _lenders(url) as lenders:
        yield lenders


@asynccontextmanager
async def _lenders(url: str) -> AsyncIterator[list[Lend]]:
    pooled, unpooled = (
        Database(url, DatabaseSettings(), pooled=pooled, enums=ENUMS) for pooled in (True, False)
    )
    await pooled.open()
    await unpooled.open()
    sessions = [pooled.dedicated_session(pinned=pinned) for pinned in (True, False)]
    try:
        yield [
            pooled.connection,
            unpooled.connection,
            *(lambda session=session: session.connection(5) for session in sessions),
        ]
    finally:
        await pooled.close()
        await unpooled.close()


async def _reset(conn: Connection) -> None:
    await run(conn, "SELECT setval('trial.calls', 1, false)")


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_statement_outside_a_transaction_is_repeated_after_a_conflict(
    lenders: list[Lend], state: str
) -> None:
    """In each kind of session, through a cursor and as a pinned statement."""
    statement = Statement(FAIL, ["times"])
    params = {"times": CONFLICT_RETRIES, "state": state}
    for lend in lenders:
        async with lend() as conn:
            await _reset(conn)
            assert await value(conn, FAIL, params) == CONFLICT_RETRIES + 1
            await _reset(conn)
            assert await fetch(conn, statement, params) == [(CONFLICT_RETRIES + 1,)]
            await _reset(conn)
        with pytest.raises(LostRace, match="try again"):
            async with lend() as conn:
                await value(conn, FAIL, params | {"times": 99})
        async with lend() as conn:
            assert await value(conn, "SELECT last_value FROM trial.calls") == CONFLICT_RETRIES + 1


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_conflict_in_a_transaction_is_an_error_of_draftsman(
    lenders: list[Lend], state: str
) -> None:
    """A part of a transaction is not repeated: `run_transaction` repeats the whole."""
    for lend in lenders:
        async with lend() as conn:
            await _reset(conn)
        with pytest.raises(TransactionConflict, match="a conflict with another transaction"):
            async with lend() as conn, conn.transaction():
                await value(conn, FAIL, {"times": 9, "state": state})
        async with lend() as conn:
            assert await value(conn, "SELECT last_value FROM trial.calls") == 1


async def test_a_session_that_began_on_a_read_only_server_is_replaced(
    server: Server, own_database: str
) -> None:
    """A default of the database or the role is read when a session begins, and never again."""
    url = server.url(own_database)
    write = "UPDATE draftsman.event_epoch SET epoch = epoch"
    server.set(own_database, "default_transaction_read_only", "on")
    async with _lenders(url) as lenders:
        for lend in lenders:
            with pytest.raises(Refused, match="read-only"):
                async with lend() as conn:
                    await run(conn, write)
        server.set(own_database, "default_transaction_read_only", "off")
        for lend in lenders:
            async with lend() as conn:
                await run(conn, write)
                pid = conn.info.backend_pid
            async with lend() as conn:
                assert conn.info.backend_pid == pid, "a session that can write is kept"


async def test_idle_sessions_of_a_pool_are_not_left_over_from_a_read_only_server(
    server: Server, own_database: str
) -> None:
    server.set(own_database, "default_transaction_read_only", "on")
    db = Database(server.url(own_database), DatabaseSettings(pool_size=3), enums=ENUMS)
    await db.open()
    async with db.connection(), db.connection(), db.connection():
        pass
    server.set(own_database, "default_transaction_read_only", "off")
    async with db.connection() as first, db.connection() as second, db.connection() as third:
        for conn in (first, second, third):
            await run(conn, "UPDATE draftsman.event_epoch SET epoch = epoch")
    await db.close()


async def test_a_read_only_database_keeps_its_sessions(database_url: str) -> None:
    db = Database(database_url, DatabaseSettings(), read_only=True, enums=ENUMS)
    await db.open()
    pids = set()
    for _ in range(3):
        async with db.connection() as conn:
            pids.add(conn.info.backend_pid)
    await db.close()
    assert len(pids) == 1
