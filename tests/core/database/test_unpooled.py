"""A database without a pool: its first connection serves queries that do not overlap."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman.database.database import Connection, Database
from draftsman.errors import DatabaseUnreachable
from draftsman.jobs.job import Status
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings
from tests.support.statements import value


@pytest.fixture
async def unpooled(database_url: str) -> AsyncIterator[Database]:
    db = Database(database_url, DatabaseSettings(pool_size=1), pooled=False, enums=ENUMS)
    await db.open()
    yield db
    await db.close()


async def test_queries_one_after_the_other_need_no_pool(unpooled: Database) -> None:
    pids = set()
    for _ in range(3):
        async with unpooled.connection() as session_conn, session_conn.transaction():
            pids.add(session_conn.info.backend_pid)
            assert (
                await value(session_conn, "SELECT 'queued'::draftsman.job_status") is Status.QUEUED
            )
    assert len(pids) == 1
    assert unpooled._pool is None


async def test_overlapping_queries_open_a_pool(unpooled: Database) -> None:
    async with unpooled.connection() as first, unpooled.connection() as second:
        assert await value(second, "SELECT 'queued'::draftsman.job_status") is Status.QUEUED
        assert first.info.backend_pid != second.info.backend_pid


async def test_a_lost_first_connection_is_replaced_by_a_pool(
    unpooled: Database, conn: Connection
) -> None:
    async with unpooled.connection() as session_conn:
        pid = session_conn.info.backend_pid
    await conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    async with unpooled.connection() as other:
        assert await value(other, "SELECT 1") == 1


async def test_a_first_connection_inside_a_transaction_is_not_lent_again(
    unpooled: Database,
) -> None:
    async with unpooled.connection() as session_conn:
        await session_conn.execute("BEGIN")
    assert session_conn.closed
    async with unpooled.connection() as other:
        assert await value(other, "SELECT 1") == 1


async def test_closing_while_the_first_connection_is_lent_closes_it(unpooled: Database) -> None:
    async with unpooled.connection() as session_conn:
        await unpooled.close()
    assert session_conn.closed
    with pytest.raises(DatabaseUnreachable, match="not open"):
        async with unpooled.connection():
            raise AssertionError


async def test_a_pool_that_cannot_be_opened_is_tried_again(
    unpooled: Database,
) -> None:
    url = unpooled.url
    async with unpooled.connection():
        unpooled.url = "postgresql://nobody@127.0.0.1:1/none"
        with pytest.raises(DatabaseUnreachable):
            async with unpooled.connection(wait=0.2):
                raise AssertionError
        unpooled.url = url
        async with unpooled.connection() as second:
            assert await value(second, "SELECT 1") == 1
