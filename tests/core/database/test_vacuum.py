"""Vacuum of the states: claims stay fast over a long history."""

from __future__ import annotations

from psycopg.errors import Diagnostic

from bench.history import Backlog, seed_draftsman
from draftsman.database.database import Connection
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.support.statements import run, value

CANCEL = """
UPDATE draftsman.job_states
   SET status = 'canceled', version = version + 1, finished_at = now()
 WHERE number = %s"""


async def test_a_vacuum_cleans_the_index_of_claims_also_of_a_few_jobs(
    make: Factory, conn: Connection
) -> None:
    await seed_draftsman(conn, Backlog(5000, 0))
    await conn.execute("RESET session_replication_role")
    await run(conn, CANCEL, (await make.queued(),))
    reports: list[str] = []

    def note(report: Diagnostic) -> None:
        reports.append(f"{report.message_primary}")

    async def is_cleaned() -> bool:
        await conn.execute("VACUUM (VERBOSE) draftsman.job_states")
        return any("index scan needed" in report for report in reports)

    conn.add_notice_handler(note)
    await until(is_cleaned, "the removal of the dead entry from the indexes")


async def test_a_vacuum_is_due_after_as_many_jobs_whatever_the_number_of_finished_jobs(
    conn: Connection,
) -> None:
    options = await value(
        conn,
        "SELECT reloptions FROM pg_class WHERE oid = 'draftsman.job_states'::regclass",
    )
    assert {"autovacuum_vacuum_scale_factor=0", "autovacuum_vacuum_threshold=10000"} <= {*options}
