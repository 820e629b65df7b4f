"""Drains of a deep queue: whether they are as fast at its end as at its start.

An open snapshot, like that of a dump, keeps the rows and index entries that the drain leaves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.measure import Run, timed_drain
from bench.report import Figures
from bench.server import session

JOBS = 200_000


async def drain(run: Run, *, snapshot: bool) -> Figures:
    """Drain a queue; `kept` is the rate of the slowest tenth divided by that of the fastest."""
    figures, tenths = await timed_drain(run, open_snapshot(run.url) if snapshot else None)
    return figures | {"kept": min(tenths) / max(tenths)}


@asynccontextmanager
async def open_snapshot(url: str) -> AsyncIterator[None]:
    """Keep a snapshot of a database open."""
    async with session(url) as reading, reading.conn.transaction():
        await reading.conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await reading.value("SELECT pg_current_snapshot()::text")
        yield
