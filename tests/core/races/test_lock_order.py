"""Statements over many jobs lock them in the order of their numbers, so that no two deadlock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from psycopg.errors import LockNotAvailable

from draftsman.database.database import Connection, Database
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import Lease
from draftsman.jobs.runs.service.claim import Claim
from draftsman.jobs.runs.store import claim as store
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, wait_blocked
from tests.support.statements import run, value

FIRST_ROW = "SELECT number FROM draftsman.job_states ORDER BY ctid LIMIT 1"
MOVE = "UPDATE draftsman.job_states SET updated_at = updated_at WHERE number = %s"
LOCK = "SELECT FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE"


@pytest.mark.parametrize(
    "work",
    [
        lambda conn, leases: store.start(conn, leases),
        lambda conn, leases: store.release_claims(conn, leases, "{}"),
    ],
    ids=["start", "release"],
)
async def test_claimed_jobs_are_locked_in_the_order_of_their_numbers(
    make: Factory,
    db: Database,
    conn: Connection,
    work: Callable[[Connection, list[Lease]], Awaitable[Any]],
) -> None:
    """Neither the leases nor the rows of the table have this order, and no index is read."""
    numbers = [await make.queued() for _ in range(3)]
    claimed = {place: await make.claimed(numbers[place]) for place in (1, 2, 0)}
    jobs = [claimed[place] for place in range(3)]
    while await value(conn, FIRST_ROW) == jobs[0].number:  # until its row is behind another
        await run(conn, MOVE, (jobs[0].number,))
    leases = [job.lease for job in claimed.values()]

    async def work_without_indexes() -> None:
        async with db.transaction() as own:
            for kind in ("indexscan", "bitmapscan", "mergejoin", "hashjoin"):
                await own.execute(f"SET LOCAL enable_{kind} = off")
            await work(own, leases)

    async with db.transaction() as other:
        await other.execute(LOCK, (jobs[1].number,))
        async with background(work_without_indexes()) as waiting:
            await wait_blocked(conn, by=other.info.backend_pid)
            with pytest.raises(LockNotAvailable):
                await conn.execute(f"{LOCK} NOWAIT", (jobs[0].number,))
            await conn.execute(f"{LOCK} NOWAIT", (jobs[2].number,))
            assert not waiting.done()


@pytest.mark.parametrize(
    "work",
    [
        lambda claim, leases: claim.start(leases),
        lambda claim, leases: claim.release_claims(leases, "the worker stops"),
    ],
    ids=["start", "release"],
)
async def test_a_claim_that_another_worker_gets_meanwhile_is_left_to_it(
    rt: Runtime,
    make: Factory,
    db: Database,
    conn: Connection,
    work: Callable[[Claim, list[Lease]], Awaitable[Any]],
) -> None:
    another = uuid4()
    lost = await make.claimed(queue="q")
    kept = await make.claimed(queue="q")
    async with db.transaction() as other:
        await store.release_claims(other, [lost.lease], "{}")
        (taken,) = await store.exchange(
            other, [], worker=another, queues=["q"], types=["noop"], free=0, ahead=1
        )
        assert taken.number == lost.number
        waiting = asyncio.ensure_future(work(rt.claim(make.worker, ()), [lost.lease, kept.lease]))
        await wait_blocked(conn, by=other.info.backend_pid)
    await waiting
    job = await rt.read_model.job(lost.number)
    assert (job.status, job.worker_id, job.run_count) == (Status.CLAIMED, another, 0)
    assert (await rt.read_model.job(kept.number)).status is not Status.CLAIMED


async def test_lost_claims_are_released_beside_one_that_is_locked(
    rt: Runtime, make: Factory, db: Database
) -> None:
    claim = rt.claim(make.worker, ())
    jobs = [await make.claimed() for _ in range(2)]
    async with db.transaction() as other:
        await other.execute(LOCK, (jobs[0].number,))
        async with asyncio.timeout(5):
            assert await claim.release_lost_claims([]) == 1
    assert (await rt.read_model.job(jobs[1].number)).status is Status.QUEUED
    assert await claim.release_lost_claims([]) == 1
