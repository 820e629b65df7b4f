"""A session that repeats a few statements: parameters and rows arrive as with a cursor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from psycopg import OperationalError

from draftsman.database.database import Connection, Database
from draftsman.database.pinned_connection import (
    PinnedConnection,
    Statement,
    fetch,
    integer_array,
    text_array,
)
from draftsman.errors import DatabaseUnreachable, DraftsmanError
from draftsman_testing.waits import until
from tests.support.statements import value

TEXTS = ["", "a b", 'a "quoted" \\ one', "{}", "NULL", "a,b", "ä €", "line\nline", "100 %"]
LISTS = Statement(
    "SELECT %(count)s + %(count)s, %(numbers)s::bigint[], %(texts)s::text[],"
    " %(documents)s::jsonb[], '100 %%'",
    integers=("count",),
)
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'pinned%'"


@asynccontextmanager
async def pinned(db: Database) -> AsyncIterator[PinnedConnection]:
    async with db.dedicated_session().connection(5) as conn:
        assert isinstance(conn, PinnedConnection)
        yield conn


@pytest.mark.parametrize("kind", ["pinned", "pooled"])
async def test_any_text_arrives_unchanged(db: Database, kind: str) -> None:
    documents = [json.dumps({"text": text}) for text in TEXTS]
    values = {
        "count": 2**40,
        "numbers": integer_array([1, 2**40]),
        "texts": text_array(TEXTS),
        "documents": text_array(documents),
    }
    async with pinned(db) if kind == "pinned" else db.connection() as conn:
        (row,) = await fetch(conn, LISTS, values)
    assert row == (2**41, [1, 2**40], TEXTS, [{"text": text} for text in TEXTS], "100 %")


async def test_empty_lists_are_empty_arrays(db: Database) -> None:
    values = {"count": 0, "numbers": integer_array([]), "texts": "{}", "documents": text_array([])}
    async with pinned(db) as conn:
        assert (await fetch(conn, LISTS, values))[0][1:4] == ([], [], [])


async def test_a_statement_is_prepared_once(db: Database) -> None:
    one = Statement("SELECT 1")
    two = Statement("SELECT %(n)s", ("n",))
    async with pinned(db) as conn:
        for n in range(3):
            assert await conn.fetch(one, {}) == [(1,)]
            assert await conn.fetch(two, {"n": n}) == [(n,)]
        assert await value(conn, PREPARED) == 2
        assert await conn.fetch(one, {}) == [(1,)]


async def test_an_error_of_the_server_is_raised_and_the_session_goes_on(db: Database) -> None:
    divide = Statement("SELECT 1 / %(n)s", ("n",))
    session = db.dedicated_session()
    for statement in (Statement("SELECT nothing"), divide):
        with pytest.raises(DraftsmanError):
            async with session.connection(5) as conn:
                await fetch(conn, statement, {"n": 0})
    async with session.connection(5) as conn:
        assert await fetch(conn, divide, {"n": 1}) == [(1,)]


async def test_a_large_parameter_and_a_large_result_arrive(db: Database) -> None:
    texts = ["x" * 1_000_000] * 20  # more than the buffers of a socket
    echo = Statement("SELECT unnest(%(texts)s::text[])")
    async with pinned(db) as conn:
        assert await conn.fetch(echo, {"texts": text_array(texts)}) == [(text,) for text in texts]
        assert await conn.fetch(echo, {"texts": "{short}"}) == [("short",)]


async def test_a_session_that_is_cut_while_it_waits_is_unreachable(
    db: Database, conn: Connection
) -> None:
    session = db.dedicated_session()
    async with session.connection(5) as mine:
        pid = mine.info.backend_pid
    sleep = Statement("SELECT pg_sleep(600)")

    async def wait() -> None:
        async with session.connection(5) as mine:
            await fetch(mine, sleep, {})

    waiting = asyncio.create_task(wait())
    await _until_active(conn, pid)
    await conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    with pytest.raises(DatabaseUnreachable):
        await waiting
    async with session.connection(5) as mine:
        assert await fetch(mine, Statement("SELECT 1"), {}) == [(1,)]


async def test_a_call_that_is_canceled_ends_its_statement_on_the_server(
    db: Database, conn: Connection
) -> None:
    session = db.dedicated_session()
    async with session.connection(5) as mine:
        pid = mine.info.backend_pid

        waiting = asyncio.create_task(fetch(mine, Statement("SELECT pg_sleep(600)"), {}))
        await _until_active(conn, pid)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    active = "SELECT count(*) FROM pg_stat_activity WHERE pid = %(pid)s AND state = 'active'"
    assert await value(conn, active, {"pid": pid}) == 0
    async with session.connection(5) as mine:
        assert await fetch(mine, Statement("SELECT 1"), {}) == [(1,)]


async def _until_active(conn: Connection, pid: int) -> None:
    """Wait until the backend sleeps."""
    query = (
        "SELECT coalesce(bool_or(wait_event = 'PgSleep'), false)"
        " FROM pg_stat_activity WHERE pid = %(pid)s"
    )

    async def look() -> bool:
        return bool(await value(conn, query, {"pid": pid}))

    await until(look, "the statement to run")


async def test_call_fails_when_another_task_closes_its_connection(db: Database) -> None:
    async with pinned(db) as conn:
        waiting = asyncio.create_task(fetch(conn, Statement("SELECT pg_sleep(60)"), {}))
        await until(lambda: _is_active(db, conn), "the statement")
        await conn.close()
        async with asyncio.timeout(5):
            with pytest.raises(OperationalError, match="was closed"):
                await waiting


async def _is_active(db: Database, conn: PinnedConnection) -> bool:
    """Return whether the session runs the statement."""
    async with db.connection() as other:
        query = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE pid = %s AND state = 'active' AND wait_event = 'PgSleep'"
        )
        return bool(await value(other, query, [conn.pgconn.backend_pid]))
