"""The leader's lease: a single owner, a new term for each, and sweeps that prove it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from uuid import UUID, uuid4

import pytest

from draftsman.database.database import Connection, Database
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.worker.registry import store as workers
from draftsman_testing.factories import QUESTION, Factory
from tests.support.clock import Clock

A = uuid4()
B = uuid4()


async def test_a_free_lease_is_acquired_once(conn: Connection) -> None:
    assert await workers.acquire(conn, "leader", A, 30) == 1
    assert await workers.acquire(conn, "leader", B, 30) is None
    assert await workers.acquire(conn, "other", B, 30) == 1


async def test_an_expired_lease_is_acquired_with_the_next_term(db: Database, clock: Clock) -> None:
    async with db.connection() as conn:
        assert await workers.acquire(conn, "leader", A, 30) == 1
    await clock.forward(29)
    async with db.connection() as conn:
        assert await workers.acquire(conn, "leader", B, 30) is None
    await clock.forward(2)
    async with db.connection() as conn:
        assert await workers.acquire(conn, "leader", B, 30) == 2


async def test_a_lease_lasts_the_requested_seconds(conn: Connection) -> None:
    await workers.acquire(conn, "leader", A, 30)
    query = "SELECT extract(epoch FROM expires_at - draftsman.now())::float8 FROM draftsman.leases"
    ((seconds,),) = await (await conn.execute(query)).fetchall()
    assert 29 < seconds <= 30
    await workers.renew(conn, "leader", A, 1, 90)
    ((seconds,),) = await (await conn.execute(query)).fetchall()
    assert 89 < seconds <= 90


@pytest.mark.parametrize(("owner", "term", "own"), [(A, 1, True), (B, 1, False), (A, 2, False)])
async def test_only_the_owner_of_the_term_renews_and_resigns(
    conn: Connection, owner: UUID, term: int, own: bool
) -> None:
    await workers.acquire(conn, "leader", A, 30)
    assert await workers.renew(conn, "leader", owner, term, 60) is own
    await workers.resign(conn, "leader", owner, term)
    assert await workers.acquire(conn, "leader", B, 30) == (2 if own else None)


async def test_an_expired_lease_is_not_renewed(db: Database, clock: Clock) -> None:
    async with db.connection() as conn:
        await workers.acquire(conn, "leader", A, 30)
    await clock.forward(31)
    async with db.connection() as conn:
        assert await workers.renew(conn, "leader", A, 1, 30) is False


async def test_one_of_many_concurrent_candidates_becomes_leader(db: Database) -> None:
    async def try_it(owner: UUID) -> int | None:
        async with db.connection() as conn:
            return await workers.acquire(conn, "leader", owner, 30)

    terms = await asyncio.gather(*(try_it(uuid4()) for _ in range(20)))
    assert sorted(term for term in terms if term is not None) == [1]


SWEEPS = ("expire", "promote", "rescue", "deregister", "partitions")


def _sweep(rt: Runtime, name: str) -> Callable[[LeaderTerm], Awaitable[int]]:
    return partial(rt.sweeps.run, name)


async def _work_for_all(make: Factory, clock: Clock) -> list[int]:
    """Create work for every sweep."""
    expiring = await make.asked(QUESTION.model_copy(update={"expires_in": 60}))
    lost = await make.running(worker=await make.worker_row())
    await make.worker_row()
    due = await make.scheduled()
    await clock.forward(100 * 86_400)
    return [expiring.number, due, lost.number]


@pytest.mark.parametrize("name", SWEEPS)
@pytest.mark.parametrize(
    "term", [LeaderTerm(B, 1), LeaderTerm(A, 7)], ids=["another owner", "another term"]
)
async def test_a_sweep_without_the_lease_does_nothing(
    make: Factory, rt: Runtime, db: Database, clock: Clock, name: str, term: LeaderTerm
) -> None:
    await _work_for_all(make, clock)
    async with db.connection() as conn:
        await workers.acquire(conn, "leader", A, 30)
    before = await rt.read_model.jobs()
    assert await _sweep(rt, name)(term) == 0
    assert await rt.read_model.jobs() == before


@pytest.mark.parametrize("name", SWEEPS)
async def test_a_sweep_with_the_lease_makes_its_changes(
    make: Factory, rt: Runtime, db: Database, clock: Clock, name: str
) -> None:
    await _work_for_all(make, clock)
    async with db.connection() as conn:
        term = await workers.acquire(conn, "leader", A, 30)
    assert await _sweep(rt, name)(LeaderTerm(A, term)) > 0
    assert await _sweep(rt, name)(LeaderTerm(A, term)) == 0


@pytest.mark.parametrize("name", SWEEPS)
async def test_a_sweep_with_an_expired_lease_does_nothing(
    make: Factory, rt: Runtime, db: Database, clock: Clock, name: str
) -> None:
    async with db.connection() as conn:
        term = await workers.acquire(conn, "leader", A, 30)
    numbers = await _work_for_all(make, clock)
    assert await _sweep(rt, name)(LeaderTerm(A, term)) == 0
    statuses = [(await rt.read_model.job(number)).status for number in numbers]
    assert statuses == [Status.WAITING_FOR_INPUT, Status.SCHEDULED, Status.RUNNING]
