"""Claims of jobs that are found by type, between whose reading and locking the jobs change.

The claim locks a job by its location. Another session may commit a new version of it before that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, wait_blocked
from tests.support.statements import rows, run

GATE = 7
WAITING = f"""
ALTER FUNCTION draftsman.claimable_by_type(text[], text[], bigint) RENAME TO found_by_type;
CREATE FUNCTION draftsman.claimable_by_type(queues text[], types text[], most bigint)
RETURNS SETOF tid LANGUAGE plpgsql STABLE AS $$
DECLARE
    found tid[] := ARRAY(SELECT draftsman.found_by_type($1, $2, $3));
BEGIN
    PERFORM pg_advisory_xact_lock_shared({GATE});
    RETURN QUERY SELECT unnest(found);
END $$;
"""
"""The claim waits for a lock after it has found the jobs."""


async def _exchange(conn: Connection, worker: UUID, free: int = 9) -> list[int]:
    jobs = await exchange(conn, [], worker=worker, queues=["q"], types=["noop"], free=free, ahead=0)
    return [job.number for job in jobs]


async def claimed(rt: Runtime, make: Factory, owner: Actor, conn: Connection, job: int) -> None:
    assert await _exchange(conn, await make.worker_row(queues=["q"]), free=1) == [job]


async def canceled(rt: Runtime, make: Factory, owner: Actor, conn: Connection, job: int) -> None:
    await rt.job_control.cancel(job, owner)


async def moved(rt: Runtime, make: Factory, owner: Actor, conn: Connection, job: int) -> None:
    await rt.queues.prioritize(job, 5, owner)


@pytest.mark.parametrize("change", [claimed, canceled, moved])
async def test_a_job_that_changes_after_it_was_found_is_left_to_the_next_claim(
    rt: Runtime,
    make: Factory,
    owner: Actor,
    conn: Connection,
    change: Callable[[Runtime, Factory, Actor, Connection, int], Awaitable[None]],
) -> None:
    job, other = [await make.queued(queue="q") for _ in range(2)]
    await run(conn, "UPDATE draftsman.job_states SET by_type = true")
    worker = await make.worker_row(queues=["q"])
    await conn.execute(WAITING)
    await conn.execute(f"SELECT pg_advisory_lock({GATE})")

    async def wait_and_claim(second: Connection) -> list[int]:
        await second.execute("SET LOCAL statement_timeout = 0")
        return await _exchange(second, worker)

    async with background(rt.db.run_transaction(wait_and_claim)) as found:
        await wait_blocked(conn, by=conn.info.backend_pid)
        await change(rt, make, owner, conn, job)
        # the scan of the claim may pin a page of an index, for which a vacuum of it would wait
        await run(conn, "VACUUM (INDEX_CLEANUP off) draftsman.job_states")
        await make.queued(queue="q")
        await conn.execute(f"SELECT pg_advisory_unlock({GATE})")
        assert await found == [other], "of the changed job, only the version that it found"
    left = await rt.db.run_transaction(lambda second: _exchange(second, worker))
    assert left == ([job, other + 1] if change is moved else [other + 1])
    leases = await rows(conn, "SELECT job, lease_token FROM draftsman.job_runs ORDER BY job")
    running = "SELECT number, lease_token FROM draftsman.job_states WHERE status = 'running'"
    assert leases == await rows(conn, f"{running} ORDER BY number")
