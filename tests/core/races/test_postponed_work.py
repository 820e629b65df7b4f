"""Postponed work that another transaction does at the same time."""

from __future__ import annotations

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from tests.support.statements import rows

KEYS = "SELECT key FROM draftsman.postponed_work ORDER BY key"


async def test_work_in_an_open_transaction_keeps_no_other_work_waiting(
    rt: Runtime, conn: Connection
) -> None:
    await conn.execute("INSERT INTO draftsman.postponed_work (key) VALUES ('a'), ('b'), ('c')")
    await conn.execute("BEGIN")
    await conn.execute("DELETE FROM draftsman.postponed_work WHERE key = 'b'")
    assert await rt.postponed_work.sweep(LeaderTerm()) == 2
    async with rt.db.connection() as watch:
        assert await rows(watch, KEYS) == [("b",)]
    await conn.execute("ROLLBACK")
    assert await rt.postponed_work.sweep(LeaderTerm()) == 1
    assert await rows(conn, KEYS) == []
