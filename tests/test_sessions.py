"""A backend that is used again by another test is as new."""

from __future__ import annotations

import pytest

from draftsman.database.database import Database
from draftsman_testing.waits import until
from tests.support.server import Server
from tests.support.sessions import IDLE, KEPT, Sessions
from tests.support.statements import rows, run, value

CLOCK = "SELECT draftsman.now() > now() + interval '1 day'"
STATE = """
SELECT pg_backend_pid(), current_setting('search_path'), current_setting('application_name'),
       (SELECT count(*) FROM pg_listening_channels()), to_regclass('pg_temp.mine'),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
"""
PID = "SELECT pg_backend_pid()"
IDLE_HERE = f"""
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = '{IDLE}'
"""
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement = 'SELECT 1'"
LEFTOVERS = (
    "SET search_path = nowhere",
    "LISTEN anything",
    "CREATE TEMP TABLE mine (a int)",
    "SELECT pg_advisory_lock(1)",
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


async def test_statements_stay_prepared_but_for_a_session_that_pins_its_plans(
    db: Database,
) -> None:
    for pinned, prepared in ((False, 0), (False, 1), (True, 0), (False, 1)):
        conn = await db.dedicated_connection(pinned=pinned)
        assert await value(conn, PREPARED) == prepared
        for _ in range(7):
            await value(conn, "SELECT 1")
        await conn.close()


async def test_a_repeated_statement_is_prepared_and_stays_so_after_a_rollback(db: Database) -> None:
    conn = await db.dedicated_connection()
    for _ in range(2):
        await value(conn, "SELECT 1")
    await run(conn, "BEGIN")
    await run(conn, "ROLLBACK")
    assert await value(conn, PREPARED) == 1
    await conn.close()


async def test_a_setting_of_the_database_holds_in_a_backend_that_is_used_again(
    db: Database, server: Server, database: str
) -> None:
    first = await db.dedicated_connection()
    before = await value(first, PID)
    await first.close()
    server.set(database, "draftsman.clock_offset", "2 days")
    shifted = await db.dedicated_connection()
    assert await value(shifted, PID) == before
    assert await value(shifted, CLOCK)
    await shifted.close()
    server.admin.execute(f'ALTER DATABASE "{database}" RESET ALL'.encode())
    plain = await db.dedicated_connection()
    assert await value(plain, PID) == before
    assert not await value(plain, CLOCK)
    await plain.close()


async def test_a_backend_that_began_under_a_setting_or_is_in_a_transaction_is_closed(
    db: Database, server: Server, database: str
) -> None:
    server.set(database, "draftsman.clock_offset", "2 days")
    idle = [await db.dedicated_connection() for _ in range(KEPT)]  # of earlier tests, too
    shifted = await db.dedicated_connection()
    during = await value(shifted, PID)
    await shifted.close()
    await idle.pop().close()
    server.admin.execute(f'ALTER DATABASE "{database}" RESET ALL'.encode())
    plain = [await db.dedicated_connection() for _ in range(2)]
    assert during not in [await value(conn, PID) for conn in plain]
    assert not any([await value(conn, CLOCK) for conn in plain])
    await run(plain[0], "BEGIN")
    left = await value(plain[0], PID)
    await plain[0].close()
    last = await db.dedicated_connection()
    assert await value(last, PID) != left
    for conn in (plain[1], last, *idle):
        await conn.close()


async def test_a_process_of_several_keeps_its_part_of_the_idle_backends(
    db: Database, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "max_idle", 2)
    conns = [await db.dedicated_connection() for _ in range(5)]
    last = conns.pop()
    for conn in conns:
        await conn.close()

    async def two_are_left() -> bool:
        return bool(await value(last, IDLE_HERE) == 2)

    await until(two_are_left, "the end of the other backends")
    await last.close()
