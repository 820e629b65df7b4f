"""Rows that a retry reads in the triggers of its insertion."""

from __future__ import annotations

from draftsman.database.database import Connection
from draftsman.jobs.control.service.control import insert_retry
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.statements import rows

JOBS = 500


async def test_a_retry_reads_no_other_jobs(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    """A session that inserted a batch first could read all jobs for each retry."""
    failed = await make.failed()
    batch = [row(invocation(type="noop"), owner, rt.limits) for _ in range(JOBS)]
    await submissions.submit(conn, batch, owner.name)
    async with conn.transaction():
        before = await _reads(conn)
        await insert_retry(conn, failed, owner)
        assert await _reads(conn) - before < JOBS / 5


async def _reads(conn: Connection) -> int:
    """Return the rows of jobs that the transaction has read."""
    ((reads,),) = await rows(
        conn,
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int"
        "  FROM pg_stat_xact_user_tables WHERE relname IN ('job_requests', 'job_states')",
    )
    return int(reads)
