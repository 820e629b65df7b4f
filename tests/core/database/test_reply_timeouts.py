"""Statements over a connection whose packets are dropped end by a local timer."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from draftsman.database import notification_listener as notifications
from draftsman.database import pinned_connection
from draftsman.database.database import Connection, Database
from draftsman.database.database_connection import DatabaseConnection
from draftsman.database.pinned_connection import Statement, fetch
from draftsman.database.session_settings import reply_margin
from draftsman.errors import DatabaseUnreachable
from draftsman.runtime import ENUMS, Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import DEADLINE, background
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import runtime_with
from tests.support.statements import value

TIMEOUT = 0.1
"""Statement timeout in seconds, which the server cannot report."""
ONE = Statement("SELECT %(n)s", ["n"])


async def _pid(lend: Callable[[], AbstractAsyncContextManager[Connection]]) -> int:
    async with lend() as conn:
        [[one]] = await fetch(conn, ONE, {"n": 1})
        assert one == 1
        return int(await value(conn, "SELECT pg_backend_pid()"))


async def test_a_statement_without_a_reply_ends_and_its_connection_is_replaced(
    database_url: str,
) -> None:
    """Pooled, first, dedicated and pinned sessions, and a transaction that is to be committed."""
    async with open_proxied(database_url, statement_timeout=TIMEOUT, connect_timeout=2) as (
        proxy,
        db,
    ):
        unpooled = Database(proxy.url, db._settings, pooled=False, enums=ENUMS)
        await unpooled.open()
        sessions = [db.dedicated_session(pinned=pinned, lease=8) for pinned in (True, False)]
        lenders: list[Callable[[], AbstractAsyncContextManager[Connection]]] = [
            db.connection,
            unpooled.connection,
            *(lambda session=session: session.connection(2) for session in sessions),
        ]
        before = [await _pid(lend) for lend in lenders]
        async with db.dedicated_session().connection(2) as conn:
            committing = conn.transaction()
            await committing.__aenter__()
            proxy.drop_packets()
            began = asyncio.get_running_loop().time()
            calls = [_pid(lend) for lend in lenders]
            attempts = [*calls, committing.__aexit__(None, None, None)]
            errors = await asyncio.wait_for(
                asyncio.gather(*attempts, return_exceptions=True), DEADLINE
            )
            assert asyncio.get_running_loop().time() - began >= TIMEOUT + reply_margin(TIMEOUT)
        assert all("no reply from the server" in str(error) for error in errors), errors
        assert all(isinstance(error, DatabaseUnreachable) for error in errors[:-1]), errors
        proxy.mend()
        after = [await _pid(lend) for lend in lenders]
        assert not {*before} & {*after}
        await unpooled.close()


async def test_a_canceled_statement_without_a_reply_ends(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_connection, "CANCEL_TIMEOUT", 0.2)
    async with open_proxied(database_url, statement_timeout=TIMEOUT, connect_timeout=2) as (
        proxy,
        db,
    ):
        await _pid(db.connection)
        proxy.drop_packets()
        async with background(_pid(db.connection)) as asking:
            await asyncio.sleep(0)
            asking.cancel()
            done, _ = await asyncio.wait({asking}, timeout=DEADLINE)
            assert done


async def test_exchange_and_heartbeat_end_within_the_lease(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    """The statement timeout of a minute is far longer than the lease."""
    lease = 8.0
    async with open_proxied(database_url) as (proxy, db):
        claim = runtime_with(rt, db, lease=lease).claim(make.worker, ["q"])

        async def exchange() -> object:
            return await claim.exchange([], types=["noop"], free=1, ahead=0)

        async def heartbeat() -> object:
            return await claim.heartbeat([], draining=False)

        await asyncio.gather(exchange(), heartbeat())
        proxy.drop_packets()
        async with asyncio.timeout(lease / 2):
            errors = await asyncio.gather(exchange(), heartbeat(), return_exceptions=True)
        assert all(isinstance(error, DatabaseUnreachable) for error in errors), errors
        proxy.mend()
        await asyncio.gather(exchange(), heartbeat())


async def test_a_reply_that_arrived_while_the_process_was_busy_is_read(conn: Connection) -> None:
    assert isinstance(conn, DatabaseConnection)
    conn.reply_timeout = 0.05

    async def block() -> None:
        arrived = select.poll()
        arrived.register(conn.pgconn.socket, select.POLLIN)
        assert arrived.poll(DEADLINE * 1000)
        wait_for_timeout = select.poll()
        wait_for_timeout.poll(100)

    answer, _ = await asyncio.gather(value(conn, "SELECT 7"), block())
    assert answer == 7
    assert await value(conn, "SELECT 8") == 8


async def test_a_listener_without_a_reply_ends(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "PROBE_INTERVAL", 0.02)
    monkeypatch.setattr(notifications, "PROBE_TIMEOUT", 0.5)
    received: asyncio.Queue[str] = asyncio.Queue()
    async with open_proxied(database_url) as (proxy, db):
        conn = await db.dedicated_connection()

        def receive(_: str, payload: str) -> None:
            received.put_nowait(payload)

        await notifications.listen(conn, receive)
        receiving = notifications.receive(conn, receive)
        async with background(receiving) as listening:
            for payload in map(str, range(20)):  # probes do not delay or lose notifications
                async with db.connection() as other:
                    await other.execute("SELECT pg_notify('draftsman_jobs', %s)", (payload,))
                assert await asyncio.wait_for(received.get(), DEADLINE) == payload
            assert not listening.done()
            proxy.drop_packets()
            with pytest.raises(Exception, match="no reply from the server"):
                await asyncio.wait_for(asyncio.shield(listening), DEADLINE)
        await conn.close()
