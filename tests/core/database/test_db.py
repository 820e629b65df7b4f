"""Connections: translated errors, retries, and limits of a session."""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest
from psycopg import errors

from draftsman.database import direct_connection
from draftsman.database.database import (
    Connection,
    Database,
    to_domain_error,
    translate_errors,
)
from draftsman.database.database_connection import (
    CONFLICT_RETRIES,
    DatabaseConnection,
    TransactionConflict,
    retry_conflicts,
)
from draftsman.database.pooler_connection import PoolerConnection
from draftsman.errors import (
    DatabaseUnreachable,
    DraftsmanError,
    LostRace,
    Refused,
    SchemaOutdated,
)
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import DEADLINE, background, wait_blocked
from tests.support.cases import cases
from tests.support.statements import rows, run, value

FAST = DatabaseSettings(connect_timeout=2)


async def test_a_missing_server_is_reported_in_one_line() -> None:
    with pytest.raises(DatabaseUnreachable) as caught:
        await Database("postgresql://nobody@127.0.0.1:1/none", FAST, enums=ENUMS).open()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [DatabaseConnection, PoolerConnection])
async def test_only_the_transaction_of_a_snapshot_keeps_its_state(
    kind: type[DatabaseConnection],
    db: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conn = await kind.connect(database_url, autocommit=True)
    if isinstance(conn, PoolerConnection):
        await conn.begin_with({}, read_only=False)

    @asynccontextmanager
    async def lend() -> AsyncIterator[Connection]:
        yield conn

    monkeypatch.setattr(db, "connection", lend)
    level = "SELECT current_setting('transaction_isolation')"
    async with conn:
        for _ in range(2):
            async with db.snapshot() as lent:
                assert await value(lent, level) == "repeatable read"
            async with db.transaction() as lent:
                assert await value(lent, level) == "read committed"
        with pytest.raises(errors.DivisionByZero):
            async with db.snapshot() as lent:
                await run(lent, "SELECT 1 / 0")
        assert await value(conn, level) == "read committed"


async def test_a_database_without_the_schema_is_reported_with_the_migrate_command(
    empty_url: str,
) -> None:
    with pytest.raises(SchemaOutdated, match="draftsman migrate"):
        await Database(empty_url, FAST, enums=ENUMS).open()


async def test_a_closed_database_is_unreachable_and_closing_twice_is_safe(db: Database) -> None:
    await db.close()
    await db.close()
    with pytest.raises(DatabaseUnreachable):
        async with db.connection():
            raise AssertionError
    with pytest.raises(DatabaseUnreachable, match="not open"):
        async with Database(db.url, FAST, enums=ENUMS).connection():
            raise AssertionError


async def test_consecutive_queries_use_one_session(database_url: str, conn: Connection) -> None:
    db = Database(database_url, FAST, enums=ENUMS)
    await db.open()
    for _ in range(3):
        async with db.connection() as session_conn:
            assert await value(session_conn, "SELECT 1") == 1
    count = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'draftsman client'"
    )
    others = await value(conn, f"{count} AND pid <> pg_backend_pid()")
    async with db.connection() as session_conn:
        assert await value(session_conn, f"{count} AND pid <> pg_backend_pid()") == others
    await db.close()
    assert others == 2  # including the fixture's session


async def test_a_dropped_connection_is_replaced(db: Database, conn: Connection) -> None:
    async with db.connection() as session_conn:
        pid = session_conn.info.backend_pid
    await conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    async with db.connection() as other:
        assert await value(other, "SELECT 1") == 1
        assert other.info.backend_pid != pid


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_at_the_moment_of_a_connection_is_not_lost(
    database_url: str, turns: int
) -> None:
    db = Database(database_url, DatabaseSettings(pool_size=1), enums=ENUMS)
    await db.open()

    async def ask() -> None:
        async with db.connection():
            pass

    last = db.connection()
    await last.__aenter__()
    async with background(ask()) as asking:
        for _ in range(20):
            await asyncio.sleep(0)  # it waits now: the only connection is in use
        async with background(last.__aexit__(None, None, None)) as closing:
            for _ in range(turns):
                await asyncio.sleep(0)
            canceled = asking.cancel()
            await asyncio.wait([asking])
            await closing
            assert asking.cancelled() is canceled
    await db.close()


async def test_a_connection_that_breaks_during_a_cancellation_is_no_outage() -> None:
    entered = asyncio.Event()

    async def breaks() -> None:
        with translate_errors():
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise psycopg.OperationalError("the connection is gone") from None

    async with background(breaks()) as task:
        await entered.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_dropped_connections_are_discarded_together_after_an_outage(
    db: Database, conn: Connection
) -> None:
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(db.connection()) for _ in range(5)]
        cut = [connection.info.backend_pid for connection in connections]
    for pid in cut:
        await conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    async with db.connection(wait=1) as other:  # the pool's own check pauses for a second
        assert await value(other, "SELECT 1") == 1
        assert other.info.backend_pid not in cut


async def test_a_dropped_dedicated_session_is_connected_again(
    db: Database, conn: Connection
) -> None:
    line = db.dedicated_session()
    async with line.connection(5) as session_conn:
        pid = session_conn.info.backend_pid
    async with line.connection(5) as session_conn:
        assert session_conn.info.backend_pid == pid
    await conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
    async with line.connection(5) as session_conn:
        assert await value(session_conn, "SELECT 1") == 1
        assert session_conn.info.backend_pid != pid


async def test_a_dedicated_session_dropped_while_it_connects_is_unreachable(
    db: Database, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = direct_connection.has_start_up_options

    async def cut(session_conn: Connection) -> bool:
        await conn.execute(
            "SELECT pg_terminate_backend(%s, 10000)", (session_conn.info.backend_pid,)
        )
        return await check(session_conn)

    monkeypatch.setattr(direct_connection, "has_start_up_options", cut)
    with pytest.raises(DatabaseUnreachable):
        async with db.dedicated_session().connection(5):
            raise AssertionError


async def test_a_session_is_lent_to_a_second_caller_after_the_first(
    db: Database, conn: Connection
) -> None:
    session = db.dedicated_session()

    async def lock(number: int) -> None:
        async with session.connection(5) as own:
            await own.execute("SELECT pg_advisory_lock(%s)", (number,))

    await lock(1)
    assert session._conn is not None
    await conn.execute("SELECT pg_advisory_lock(2)")
    first = asyncio.create_task(lock(2))
    await wait_blocked(conn, by=conn.info.backend_pid)
    conn.pgconn.exec_(b"SELECT pg_advisory_unlock(2)")  # the first caller cannot read its reply yet
    assert select.select([session._conn.pgconn.socket], [], [], DEADLINE)[0]
    async with asyncio.timeout(DEADLINE):
        await lock(3)
        await first


async def test_a_dedicated_session_has_generic_plans_without_sequential_scans(db: Database) -> None:
    async with db.dedicated_session().connection(5) as session_conn:
        assert await value(session_conn, "SHOW plan_cache_mode") == "force_generic_plan"
        assert await value(session_conn, "SHOW enable_seqscan") == "off"


async def test_a_dedicated_session_that_times_out_is_unreachable(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Database(database_url, DatabaseSettings(), enums=ENUMS)
    await db.open()
    never = asyncio.Event()
    monkeypatch.setattr(db, "dedicated_connection", lambda **_: never.wait())
    with pytest.raises(DatabaseUnreachable, match="no connection within"):
        async with db.dedicated_session().connection(0.05):
            pass
    await db.close()


async def test_a_connection_dropped_during_a_query_is_unreachable(
    db: Database, conn: Connection
) -> None:
    async def cut(session_conn: Connection) -> None:
        await conn.execute("SELECT pg_terminate_backend(%s)", (session_conn.info.backend_pid,))
        await session_conn.execute("SELECT 1")

    with pytest.raises(DatabaseUnreachable):
        await db.run_transaction(cut)


async def test_a_slow_statement_times_out(database_url: str) -> None:
    db = Database(database_url, DatabaseSettings(statement_timeout=0.05), enums=ENUMS)
    await db.open()
    try:
        with pytest.raises(DatabaseUnreachable, match="timed out"):
            async with db.connection() as conn:
                await conn.execute("SELECT pg_sleep(60)")
    finally:
        await db.close()


async def test_a_read_only_session_cannot_write(database_url: str, make: Factory) -> None:
    await make.queued()
    db = Database(database_url, FAST, read_only=True, enums=ENUMS)
    await db.open()
    try:
        async with db.connection() as conn:
            assert len(await rows(conn, "SELECT 1 FROM draftsman.jobs")) == 1
        with pytest.raises(Refused, match="read-only"):
            async with db.connection() as conn:
                await conn.execute("UPDATE draftsman.event_epoch SET epoch = 2")
    finally:
        await db.close()


async def test_a_failed_transaction_changes_nothing(db: Database, conn: Connection) -> None:
    async def work(session_conn: Connection) -> None:
        await session_conn.execute("UPDATE draftsman.event_epoch SET epoch = 9")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await db.run_transaction(work)
    assert await value(conn, "SELECT epoch FROM draftsman.event_epoch") == 1


async def test_a_transaction_is_retried_after_a_deadlock(
    db: Database, make: Factory, conn: Connection
) -> None:
    """Two transactions lock two jobs crosswise; PostgreSQL aborts one, and both succeed."""
    jobs = await make.queued(), await make.queued()
    first_locks = asyncio.Barrier(2)
    tries = []

    async def work(session_conn: Connection, mine_first: int, then: int) -> None:
        tries.append(session_conn.info.backend_pid)
        lock = "SELECT 1 FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE"
        await session_conn.execute("SET LOCAL deadlock_timeout = '10ms'")
        await session_conn.execute(lock, (mine_first,))
        if len(tries) <= 2:
            await first_locks.wait()
        await session_conn.execute(lock, (then,))

    await asyncio.gather(
        db.run_transaction(lambda mine: work(mine, jobs[0], jobs[1])),
        db.run_transaction(lambda mine: work(mine, jobs[1], jobs[0])),
    )
    assert len(tries) == 3


async def test_a_transaction_that_fails_repeatedly_is_a_lost_race() -> None:
    tries = []

    async def work() -> None:
        tries.append(1)
        raise errors.SerializationFailure

    with pytest.raises(LostRace, match="try again"):
        await retry_conflicts(work)
    assert len(tries) == 1 + CONFLICT_RETRIES


async def test_other_errors_are_not_retried() -> None:
    tries = []

    async def work() -> None:
        tries.append(1)
        raise errors.UniqueViolation

    with pytest.raises(errors.UniqueViolation):
        await retry_conflicts(work)
    assert len(tries) == 1


async def test_a_waiting_session_is_detected(db: Database, conn: Connection) -> None:
    """The races depend on this function, which reports the waiting sessions."""
    async with db.connection() as first, db.connection() as second:
        async with first.transaction():
            await first.execute("UPDATE draftsman.event_epoch SET epoch = 2")
            waiting = asyncio.ensure_future(
                second.execute("UPDATE draftsman.event_epoch SET epoch = 3")
            )
            await wait_blocked(conn, by=first.info.backend_pid)
        await waiting
    assert await value(conn, "SELECT epoch FROM draftsman.event_epoch") == 3


@cases(
    ("error", "becomes"),
    [
        (errors.DeadlockDetected("x"), TransactionConflict),
        (errors.SerializationFailure("x"), TransactionConflict),
        (errors.UndefinedTable("x"), SchemaOutdated),
        (errors.UndefinedColumn("x"), SchemaOutdated),
        (errors.InvalidSchemaName("x"), SchemaOutdated),
        (errors.ReadOnlySqlTransaction("x"), Refused),
        (errors.InsufficientPrivilege("x"), Refused),
        (errors.QueryCanceled("x"), DatabaseUnreachable),
        (errors.AdminShutdown("x"), DatabaseUnreachable),
        (errors.TooManyConnections("x"), DatabaseUnreachable),
        (psycopg.OperationalError("x\ny"), DatabaseUnreachable),
        (psycopg.InterfaceError("x"), DatabaseUnreachable),
        (errors.CheckViolation("x"), DraftsmanError),
        (errors.UniqueViolation(""), DraftsmanError),
    ],
)
def test_database_errors_become_domain_errors(
    error: Exception, becomes: type[DraftsmanError]
) -> None:
    domain_error = to_domain_error(error)
    assert type(domain_error) is becomes
    assert "\n" not in str(domain_error)


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE draftsman.job_states SET status = 'queued', version = 9, worker_id = NULL,
                  lease_token = NULL""",
        """UPDATE draftsman.job_states SET status = 'resumed', version = version + 1,
                  worker_id = NULL, lease_token = NULL""",
        "DELETE FROM draftsman.job_states",
    ],
    ids=["transition", "consistency", "change"],
)
async def test_a_refusal_of_the_guards_is_a_lost_race(
    make: Factory, db: Database, statement: str
) -> None:
    await make.running()
    with pytest.raises(LostRace, match=r"not allowed|exactly one open run"):
        await db.run_transaction(lambda conn: run(conn, statement))
