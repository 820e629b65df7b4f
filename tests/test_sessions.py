"""A backend that is used again by another test is as new."""

from __future__ import annotations

from draftsman.store.postgres.database import Database
from tests.support.server import Server
from tests.support.statements import rows, run, value

CLOCK = "SELECT draftsman.now() > now() + interval '1 day'"
STATE = """
SELECT pg_backend_pid(), current_setting('search_path'), current_setting('application_name'),
       (SELECT count(*) FROM pg_listening_channels()), to_regclass('pg_temp.mine'),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       (SELECT count(*) FROM pg_prepared_statements)
"""
LEFTOVERS = (
    "SET search_path = nowhere",
    "LISTEN anything",
    "CREATE TEMP TABLE mine (a int)",
    "SELECT pg_advisory_lock(1)",
    "PREPARE mine AS SELECT 1",
)


async def test_a_backend_is_used_again_as_new(db: Database) -> None:
    first = await db.dedicated_connection()
    before = await rows(first, STATE)
    for statement in LEFTOVERS:
        await run(first, statement)
    await first.close()
    assert first.closed
    again = await db.dedicated_connection()
    assert await rows(again, STATE) == before
    await again.close()


async def test_a_setting_of_the_database_and_an_open_transaction_need_another_backend(
    db: Database, server: Server, database: str
) -> None:
    pid = "SELECT pg_backend_pid()"
    first = await db.dedicated_connection()
    before = await value(first, pid)
    await first.close()
    server.set(database, "draftsman.clock_offset", "2 days")
    shifted = await db.dedicated_connection()
    assert await value(shifted, CLOCK)
    during = await value(shifted, pid)
    assert during != before
    await shifted.close()
    server.admin.execute(f'ALTER DATABASE "{database}" RESET ALL'.encode())
    plain = await db.dedicated_connection()
    assert not await value(plain, CLOCK)
    assert await value(plain, pid) not in (before, during)
    await run(plain, "BEGIN")
    left = await value(plain, pid)
    await plain.close()
    last = await db.dedicated_connection()
    assert await value(last, pid) != left
    await last.close()
