"""The notification listener, and the session lock that it holds."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database import notification_listener
from draftsman.database.database import Connection, Database
from draftsman.database.notification_listener import NotificationListener
from draftsman.worker.registry import store as workers
from draftsman.worker.registry.service import SessionLock
from draftsman_testing.waits import background, until
from tests.support.statements import value


async def test_notifications_arrive_while_an_earlier_session_still_has_the_lock(
    db: Database, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server notices the end of a lost connection late, and keeps its lock until then."""
    monkeypatch.setattr(notification_listener, "LOCK_RETRY", 0.05)
    received: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    lock = SessionLock()
    lock.number = await workers.lock_number(conn)
    assert await workers.hold(conn, lock.number)
    listener = NotificationListener(
        db, lambda channel, payload: received.put_nowait((channel, payload)), lock.hold
    )

    async def sent(payload: str) -> tuple[str, str]:
        await value(conn, "SELECT pg_notify('draftsman_jobs', %s)", (payload,))
        return await asyncio.wait_for(received.get(), 20)

    async def held() -> bool:
        return listener.lock_held

    async with background(listener.run()) as running:
        assert await asyncio.wait_for(received.get(), 20) == ("", "")
        for number in range(20):  # also those that arrive during an attempt
            assert await sent(f"before {number}") == ("draftsman_jobs", f"before {number}")
        assert not listener.lock_held
        await value(conn, "SELECT pg_advisory_unlock(1146242644, %s)", (lock.number,))
        await until(held, "the session lock")
        assert await sent("after") == ("draftsman_jobs", "after")
        assert not await workers.hold(conn, lock.number)
        listener.stop.set()
        await asyncio.wait_for(running, 20)
