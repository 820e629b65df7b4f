"""A claim that sees jobs as queued which another session has claimed since it began.

Locking such a job would lock its newest version, until the end of the claim's transaction, and the
other worker could not settle its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.run import ClaimedJob, Lease
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, wait_blocked
from tests.core.races.test_claims_by_type import GATE, WAITING
from tests.support.statements import run

SEARCHING = f"""
CREATE OR REPLACE FUNCTION draftsman.claim_reserving_jobs(queues text[], types text[])
RETURNS SETOF tid LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({GATE});
END $$;
"""
"""The claim waits for a lock before it reads the index of the claim; for the reservation of a queue
that it does not serve."""


@pytest.mark.parametrize(
    ("gate", "by_type", "after"),
    [(SEARCHING, False, False), (SEARCHING, False, True), (WAITING, True, False)],
    ids=["from the start", "after a job", "by type"],
)
async def test_a_claim_does_not_lock_jobs_that_others_claimed_since_it_began(
    rt: Runtime,
    make: Factory,
    owner: Actor,
    conn: Connection,
    gate: str,
    by_type: bool,
    after: bool,
) -> None:
    await rt.reservations.submit(invocation(type="noop", queue="reserved"), owner, 600)
    before = (await make.running(queue="q")).number
    jobs = [await make.queued(queue="q") for _ in range(3)]
    await run(conn, f"UPDATE draftsman.job_states SET by_type = {by_type} WHERE status = 'queued'")
    other = await make.worker_row(queues=["q"])
    await run(conn, gate)
    await run(conn, f"SELECT pg_advisory_lock({GATE})")

    async with rt.db.transaction() as second:
        await second.execute("SET LOCAL statement_timeout = 0")
        claiming = _exchange(second, make.worker, after=before if after else None)
        async with background(claiming) as claim:
            await wait_blocked(conn, by=conn.info.backend_pid)
            claimed = await _exchange(conn, other, free=2)
            assert [job.number for job in claimed] == jobs[:2]
            await conn.execute(f"SELECT pg_advisory_unlock({GATE})")
            assert [job.number for job in await claim] == jobs[2:]
        settled = await _exchange(conn, other, [job.lease for job in claimed], free=0)
        assert [job.status for job in settled] == [Status.COMPLETED] * 2


async def _exchange(
    conn: Connection,
    worker: UUID,
    done: Sequence[Lease] = (),
    free: int = 9,
    after: int | None = None,
) -> list[ClaimedJob]:
    return await exchange(
        conn,
        [(lease, {}) for lease in done],
        worker=worker,
        queues=["q"],
        types=["noop"],
        free=free,
        ahead=0,
        after=after,
    )
