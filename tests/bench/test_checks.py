"""A database without draftsman's guards gives no figures."""

from __future__ import annotations

import psycopg
import pytest

from bench import checks
from bench.history import Backlog, seed_draftsman
from bench.server import BenchError
from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory


async def test_migrated_database_is_accepted(database_url: str) -> None:
    await checks.guarded(database_url)


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (
            "ALTER TABLE draftsman.job_states DISABLE TRIGGER job_states_updated",
            "triggers job_states_updated",
        ),
        ("DROP TRIGGER job_states_updated ON draftsman.job_states", "triggers job_states_updated"),
        (
            (
                "CREATE OR REPLACE FUNCTION draftsman.violated_rule(s draftsman.job_states)"
                " RETURNS text LANGUAGE sql IMMUTABLE RETURN"
                " CASE WHEN s.queue = '' THEN 'job_states_finished' END"
            ),
            "rules job_states_attempts",
        ),
        ("DROP INDEX draftsman.job_states_claim", "indexes job_states_claim"),
        (
            (
                "ALTER TABLE draftsman.job_runs DROP CONSTRAINT job_runs_finished,"
                " ADD CONSTRAINT job_runs_finished CHECK (true) NOT VALID"
            ),
            "constraints job_runs_finished",
        ),
    ],
)
async def test_a_database_without_a_guard_is_refused(
    database_url: str, change: str, missing: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(change)
    with pytest.raises(BenchError, match=missing):
        await checks.guarded(database_url)


async def test_a_database_whose_triggers_do_not_fire_is_refused(
    database_url: str, database: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(f"ALTER DATABASE {database} SET session_replication_role = replica")
    with pytest.raises(BenchError, match="no trigger fires"):
        await checks.guarded(database_url)


async def test_jobs_without_their_rows_are_detected(
    database_url: str, make: Factory, conn: Connection
) -> None:
    old = await make.queued()
    new = await make.queued()
    assert await checks.newest(database_url) == new
    await checks.submitted(database_url, old, 1)
    with pytest.raises(BenchError, match="of 2 jobs 2 are queued with 1 events, not 3"):
        await checks.submitted(database_url, 0, 3)
    with pytest.raises(BenchError, match="of 2 jobs 0 are completed with 4 events"):
        await checks.drained(database_url, 0, 2)
    await conn.execute("SET session_replication_role = replica")
    await conn.execute("DELETE FROM draftsman.job_events WHERE job = %s", (old,))
    with pytest.raises(BenchError, match="of 2 jobs 1 are queued"):
        await checks.submitted(database_url, 0, 2)


async def test_seeded_history_satisfies_the_invariants(
    rt: Runtime, conn: Connection, database_url: str, make: Factory
) -> None:
    await seed_draftsman(conn, Backlog(finished=20, waiting=5))
    await conn.execute("RESET session_replication_role")
    assert {name: rows for name, rows in (await rt.read_model.invariants()).items() if rows} == {}
    assert await make.answer(21, "red") is not None
    assert await make.queued() == 26


async def test_seeded_finished_jobs_have_all_rows(conn: Connection, database_url: str) -> None:
    await seed_draftsman(conn, Backlog(finished=20, waiting=0))
    await checks.drained(database_url, 0, 20)
