"""Statements over many jobs lock them in the order of their numbers, so that no two deadlock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from psycopg.errors import LockNotAvailable

from draftsman.domain.run import Lease
from draftsman.runtime import Runtime
from draftsman.services.runs.claim import Claim
from draftsman.store.postgres.database import Connection, Database
from tests.factories import Factory
from tests.support.waits import background, wait_blocked

LOCK = "SELECT FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE"


@pytest.mark.parametrize(
    "work",
    [
        lambda claim, leases: claim.start(leases),
        lambda claim, leases: claim.release_claims(leases, "the worker stops"),
    ],
    ids=["start", "release"],
)
async def test_claimed_jobs_are_locked_in_the_order_of_their_numbers(
    rt: Runtime,
    make: Factory,
    db: Database,
    conn: Connection,
    work: Callable[[Claim, list[Lease]], Awaitable[Any]],
) -> None:
    jobs = [await make.claimed() for _ in range(3)]
    leases = [jobs[place].lease for place in (1, 2, 0)]
    async with db.transaction() as other:
        await other.execute(LOCK, (jobs[1].number,))
        async with background(work(rt.claim(make.worker, ()), leases)) as waiting:
            await wait_blocked(conn, by=other.info.backend_pid)
            with pytest.raises(LockNotAvailable):
                await conn.execute(f"{LOCK} NOWAIT", (jobs[0].number,))
            await conn.execute(f"{LOCK} NOWAIT", (jobs[2].number,))
            assert not waiting.done()
