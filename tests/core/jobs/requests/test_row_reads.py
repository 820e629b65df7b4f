"""A submission reads the same few rows, however many its tables have."""

from __future__ import annotations

from typing import Final, LiteralString

from draftsman.database.database import Connection, Database
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime

ROWS: Final = 1_000
FILL: Final[tuple[LiteralString, ...]] = (
    (
        "INSERT INTO draftsman.limits (scope, value, running)"
        " SELECT scope, 'other-' || g, 5 FROM generate_series(1, %s) g,"
        " unnest('{repo,person,type,agent}'::text[]) scope"
    ),
    (
        "INSERT INTO draftsman.people (name, updated_by)"
        " SELECT 'p' || g, 'x' FROM generate_series(1, %s) g"
    ),
    (
        "INSERT INTO draftsman.schedules (name, rule, timezone, request, created_by)"
        " SELECT 's' || g, '0 0 1 1 *', 'UTC', '{}', 'x' FROM generate_series(1, %s) g"
    ),
    (
        "INSERT INTO draftsman.queue_pauses (queue, paused_by, reason)"
        " SELECT 'q' || g, 'x', 'y' FROM generate_series(1, %s) g"
    ),
    (
        "INSERT INTO draftsman.repos (host, owner, name, remote_url, added_by)"
        " SELECT 'h', 'o', 'r' || g, 'https://h/o/r' || g, 'x' FROM generate_series(1, %s) g"
    ),
)
READ: Final = """
    SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0)
      FROM pg_stat_xact_user_tables
     WHERE schemaname = 'draftsman' AND seq_tup_read + coalesce(idx_tup_fetch, 0) > 50"""


async def test_submission_reads_no_whole_table(
    rt: Runtime, owner: Actor, db: Database, conn: Connection
) -> None:
    await conn.execute("SET session_replication_role = replica")  # their triggers are not at issue
    for query in FILL:
        await conn.execute(query, (ROWS,))
    await conn.execute("ANALYZE")
    request = invocation(type="noop", concurrency_key="key", key="k", subject_key="s", text="x")
    async with db.transaction() as own:
        await rt.submissions.submit_many([request], owner, connection=own)
        read = await (await own.execute(READ)).fetchall()
    assert read == [], "rows read by table"
