"""Waiting for conditions, never for a fixed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from draftsman.database.database import Connection

T = TypeVar("T")
DEADLINE = 30.0
"""Seconds after which a condition counts as missing."""
SHARE = 0.4
"""Fraction of the time waited so far until the next check, since a check takes time."""
LEAST = 0.004
MOST = 0.1
"""Seconds between two checks."""


async def until(
    look: Callable[[], Awaitable[bool]], what: str, deadline: float | None = None
) -> None:
    """Return once `look` returns a true value; fail with `what` at the deadline, in seconds."""
    began = time.monotonic()
    deadline = deadline or DEADLINE
    while not await look():
        waited = time.monotonic() - began
        assert waited < deadline, f"{what}: not within {deadline:.0f} s"
        await asyncio.sleep(min(max(waited * SHARE, LEAST), MOST))


async def wait_blocked(conn: Connection, *, by: int, sessions: int = 1) -> None:
    """Wait until `count` sessions of the database wait for locks, at least one for session `by`.

    This is PostgreSQL's own information. A session behind another waiting session is not blocked by
    `by`.
    """

    async def look() -> bool:
        cursor = await conn.execute(
            "SELECT count(*), bool_or(%s = ANY (pg_blocking_pids(pid))) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'",
            (by,),
        )
        count, behind = (await cursor.fetchall())[0]
        return count >= sessions and bool(behind)

    await until(look, f"{sessions} session(s) waiting for a lock of {by}")


@asynccontextmanager
async def background(work: Awaitable[T]) -> AsyncIterator[asyncio.Future[T]]:
    """Run a coroutine beside the test; it is canceled at the end of the block."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
        await asyncio.wait([task])
