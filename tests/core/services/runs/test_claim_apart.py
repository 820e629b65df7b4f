"""Candidates of claims, and jobs that a transaction keeps from the claims of others."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.domain.people.actor import Actor
from draftsman.services.isolation import Isolation
from draftsman.services.runs.claim import Claim
from draftsman.store.claim import claimable_jobs, keep_from_claims
from draftsman.store.postgres.database import Connection, Database
from tests.factories import Factory
from tests.support.statements import run


@pytest.fixture
def claim(make: Factory) -> Claim:
    return make.rt.claim(make.worker, ("q",))


async def test_candidates_are_in_the_order_of_claims(make: Factory, conn: Connection) -> None:
    for kind in ("indexscan", "indexonlyscan", "bitmapscan"):  # whatever the plan
        await conn.execute(f"SET enable_{kind} = off")
    priorities = [0, 5, 0, 0]
    first, urgent, moved, later = [await make.queued(queue="q", priority=p) for p in priorities]
    other = await make.queued(queue="a", priority=9)
    position = "UPDATE draftsman.job_states SET position = %s WHERE number = ANY (%s)"
    await run(conn, position, (1, [moved]))
    assert await claimable_jobs(conn, ["q", "a"], ["noop"], [], 9) == [
        *(urgent, moved, first, later),
        other,
    ]
    assert await claimable_jobs(conn, ["q"], ["noop"], [], 2) == [urgent, moved]
    await run(conn, position, (1, [urgent, first, moved, later]))
    assert await claimable_jobs(conn, ["a", "q"], ["noop"], [], 3) == [
        other,
        *(urgent, first, moved),
    ]


async def test_candidates_are_of_these_queues_and_types_and_without_jobs_set_aside(
    make: Factory, conn: Connection
) -> None:
    aside, good = [await make.queued(queue="q") for _ in range(2)]
    await make.queued(queue="q", type="report")
    await make.queued(queue="other")
    assert await claimable_jobs(conn, ["q"], ["noop"], [aside], 9) == [good]


async def test_other_sessions_claim_no_job_that_is_kept_from_them(
    make: Factory, claim: Claim, conn: Connection
) -> None:
    kept, free = [await make.queued(queue="q") for _ in range(2)]
    async with conn.transaction():
        await keep_from_claims(conn, [kept])
        claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
        assert [job.number for job in claimed] == [free]
    claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
    assert [job.number for job in claimed] == [kept]


async def test_a_claim_leaves_the_jobs_that_are_set_aside(
    make: Factory, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside, free = [await make.queued(queue="q") for _ in range(2)]
    monkeypatch.setattr(Isolation, "aside", property(lambda _: [aside]))
    claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
    assert [job.number for job in claimed] == [free]
    monkeypatch.setattr(Isolation, "aside", property(lambda _: []))
    claimed = await claim.exchange([], types=["noop"], free=9, ahead=0)
    assert [job.number for job in claimed] == [aside]


def test_a_claim_with_a_session_of_its_own_is_otherwise_the_same(make: Factory) -> None:
    claim = Claim(make.rt.db, make.worker, ("q",), limited=True, lease=7.0)
    other = claim.with_own_session()
    assert other._session is not claim._session
    for name in ("_worker", "_queues", "_limited", "_lease"):
        assert getattr(other, name) == getattr(claim, name)


async def test_only_jobs_that_can_be_claimed_are_kept_from_claims(
    make: Factory, owner: Actor, conn: Connection, db: Database
) -> None:
    running = (await make.running(queue="q")).number
    paused = await make.queued(queue="held")
    await make.rt.queues.pause("held", owner, "r", "noop")
    lock = "SELECT FROM draftsman.job_states WHERE number = ANY (%s) FOR UPDATE NOWAIT"
    async with conn.transaction():
        await keep_from_claims(conn, [running, paused])
        async with db.connection() as other:
            await other.execute(lock, ([running, paused],))


async def test_a_job_that_another_transaction_has_locked_is_not_waited_for(
    make: Factory, conn: Connection, db: Database
) -> None:
    locked, free = [await make.queued(queue="q") for _ in range(2)]
    lock = "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE"
    async with db.transaction() as other:
        await other.execute(lock, (locked,))
        async with asyncio.timeout(5), conn.transaction():
            await keep_from_claims(conn, [locked, free])
