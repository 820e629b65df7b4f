"""A database that is used again by another test is as new, whatever changed in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from draftsman.database.database import Connection, Database
from draftsman.people.actor import Actor
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings
from draftsman_testing.factories import Factory
from tests.support import database_pool
from tests.support.database_pool import MAX_IDLE, Databases
from tests.support.server import Server
from tests.support.slow import slow_except
from tests.support.statements import rows, run, value

STAINS = [
    "CREATE TABLE public.mine (a int)",
    "CREATE INDEX ON draftsman.job_requests (ticket_title)",
    "ALTER TABLE draftsman.job_states DISABLE TRIGGER ALL",
    "GRANT SELECT ON draftsman.jobs TO PUBLIC",
    "ANALYZE draftsman.job_states",
    "UPDATE draftsman.event_epoch SET epoch = epoch + 1",
    "DELETE FROM draftsman.schema_migrations WHERE name = '0001_database'",
]
COUNTS = "SELECT count(*) FROM draftsman.jobs"
CLOCK = "SELECT draftsman.now() > now() + interval '1 day'"


@pytest.fixture
def databases(server: Server) -> Iterator[Databases]:
    """Provide databases that only this test uses."""
    databases = Databases(server)
    yield databases
    databases.close()


@asynccontextmanager
async def lent(server: Server, databases: Databases) -> AsyncIterator[tuple[str, Runtime]]:
    """Lend a database, with the services over it."""
    name = databases.acquire()
    url = server.url(name)
    settings = Settings.model_validate({"database_url": url})
    db = Database(url, settings.database, enums=ENUMS)
    await db.open()
    yield name, wire(settings, db, False)
    await db.close()
    databases.release(name)


async def rest(server: Server, databases: Databases) -> None:
    """Leave as many others idle as after a test."""
    for name in [databases.acquire() for _ in range(MAX_IDLE)]:
        databases.release(name)


async def test_rows_numbers_and_the_clock_are_as_new(
    server: Server, databases: Databases, owner: Actor
) -> None:
    async with lent(server, databases) as (first, rt):
        await Factory(rt, owner).asked()
        await Factory(rt, owner).completed()
        server.set(first, "draftsman.clock_offset", "2 days")
    await rest(server, databases)
    async with lent(server, databases) as (again, rt):
        async with rt.db.connection() as conn:
            assert await rows(conn, "SELECT name FROM draftsman.schema_migrations") != []
            assert await value(conn, COUNTS) == 0
            assert not await value(conn, CLOCK)
            assert await left_over(conn) == []
        assert (await Factory(rt, owner).running()).number == 1
    assert again == first


async def left_over(conn: Connection) -> list[str]:
    """Return the tables with rows that no migration inserts."""
    tables = await rows(conn, "SELECT tablename FROM pg_tables WHERE schemaname = 'draftsman'")
    names = sorted(
        {name for (name,) in tables} - {"schema_migrations", "schema_functions", "event_epoch"}
    )
    return [name for name in names if await value(conn, f"SELECT count(*) FROM draftsman.{name}")]


@pytest.mark.parametrize("stain", slow_except([STAINS[0], STAINS[-2]], STAINS))
async def test_database_that_cannot_be_emptied_is_dropped(
    server: Server, databases: Databases, stain: str
) -> None:
    async with lent(server, databases) as (first, rt), rt.db.connection() as conn:
        await run(conn, f"SET session_replication_role = replica; {stain}")
    await rest(server, databases)
    assert databases.acquire() != first
    query = "SELECT FROM pg_database WHERE datname = %s"
    assert server.admin.execute(query, (first,)).fetchall() == []


async def test_database_in_use_is_not_lent(server: Server, databases: Databases) -> None:
    async with lent(server, databases) as (first, rt):
        left = await rt.db.dedicated_connection()
    await rest(server, databases)
    assert databases.acquire() != first
    await left.close()


async def test_database_is_dropped_after_its_last_use(
    server: Server, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_pool, "MAX_REUSES", reuses := 10)
    names = []
    for _ in range((MAX_IDLE + 1) * reuses + 1):
        names.append(databases.acquire())
        databases.release(names[-1])
    assert names[0] == names[MAX_IDLE + 1]
    assert max(names.count(name) for name in names) == reuses
