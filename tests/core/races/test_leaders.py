"""Two concurrent leaders: each change is made once, and no sweep waits for another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.questions.store import questions
from draftsman.runtime import Runtime
from draftsman.worker import store as worker
from draftsman.worker.registry import store as workers
from draftsman_testing.factories import QUESTION, Factory
from tests.support.clock import Clock
from tests.support.races import FirstSession, hold_commits
from tests.support.statements import rows, value

Sweep = Callable[[Runtime, Factory], Awaitable[int]]


async def _rescue(rt: Runtime, make: Factory) -> int:
    return await rt.dead_workers.rescue(LeaderTerm(), [make.worker])


SWEEPS: dict[str, Sweep] = {
    "expire": lambda rt, make: rt.expiry.expire(LeaderTerm()),
    "promote": lambda rt, make: rt.promotion.promote(LeaderTerm()),
    "rescue": _rescue,
}


async def _work(make: Factory, clock: Clock, jobs: int) -> None:
    """Create this number of jobs for each sweep."""
    for _ in range(jobs):
        await make.asked(QUESTION.model_copy(update={"expires_in": 60.0}))
        await make.scheduled(delay=60)
    await clock.forward(61)
    for on_lost in ("retry", "resume", "new_job") * jobs:
        await make.running(on_lost=on_lost)


@pytest.mark.parametrize("name", SWEEPS)
async def test_a_second_sweep_skips_rows_of_the_first(
    make: Factory, rt: Runtime, clock: Clock, conn: Connection, name: str
) -> None:
    await _work(make, clock, 1)
    sweeps_by_name: dict[str, Callable[[Connection], Awaitable[Any]]] = {
        "expire": lambda c: questions.expire(c, LeaderTerm(), 100),
        "promote": lambda c: job_store.promote(c, LeaderTerm(), 100),
        "rescue": lambda c: worker.rescue(c, LeaderTerm(), 100, dead=[make.worker], lease=300),
    }
    async with (
        hold_commits(rt) as first,
        first.doing(first.rt.db.run_transaction(sweeps_by_name[name])) as swept,
    ):
        async with asyncio.timeout(5):
            assert await SWEEPS[name](rt, make) == 0
    assert swept.result()
    assert await SWEEPS[name](rt, make) == 0


async def test_concurrent_sweeps_make_each_change_once(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await _work(make, clock, 4)
    done = Counter[str]()

    async def sweep(name: str) -> None:
        changed = await SWEEPS[name](rt, make)
        done[name] += changed

    async with asyncio.timeout(30):
        await asyncio.gather(*(sweep(name) for name in SWEEPS for _ in range(5)))
    for name in SWEEPS:
        await sweep(name)
    assert done == {"expire": 4, "promote": 4, "rescue": 12}


async def test_the_new_job_of_a_lost_job_is_created_once(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    works = [await make.running(on_lost="new_job") for _ in range(5)]
    await asyncio.gather(*(_rescue(rt, make) for _ in range(6)))
    retried = await rows(
        conn, "SELECT retry_of FROM draftsman.jobs WHERE retry_of IS NOT NULL ORDER BY 1"
    )
    assert retried == [(work.number,) for work in works]


async def test_a_new_job_and_a_concurrent_manual_retry_are_one_job(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(on_lost="new_job")
    await rt.db.run_transaction(
        lambda c: worker.rescue(c, LeaderTerm(), 1, dead=[make.worker], lease=300)
    )
    async with first.doing(first.rt.job_control.retry(work.number, make.owner)) as retry:
        again = await first.then(rt.job_control.retry(work.number, make.owner), conn)
    assert (retry.result().number, again.outcome) == (again.number, "deduplicated")


async def test_an_old_leaders_sweep_ends_with_its_term(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """It wakes after its lease and finds another leader: it does nothing."""
    old = uuid4()
    new = uuid4()
    async with rt.db.connection() as conn:
        term = await workers.acquire(conn, "leader", old, 30)
    number = await make.scheduled(delay=10)
    await clock.forward(31)
    async with rt.db.connection() as conn:
        assert await workers.acquire(conn, "leader", new, 30) == 2
    assert await rt.promotion.promote(LeaderTerm(old, term)) == 0
    assert (await rt.read_model.job(number)).status is Status.SCHEDULED
    assert await rt.promotion.promote(LeaderTerm(new, 2)) == 1


async def test_two_candidates_for_an_expired_lease_elect_one_leader(
    rt: Runtime, first: FirstSession, clock: Clock, conn: Connection
) -> None:
    first_id = uuid4()
    two = uuid4()

    async def acquire(runtime: Runtime, owner: Any) -> int | None:
        async with runtime.db.connection() as session:
            return await workers.acquire(session, "leader", owner, 30)

    assert await acquire(rt, uuid4()) == 1
    await clock.forward(31)
    await first.reopen()
    async with first.doing(acquire(first.rt, first_id)) as acquired:
        assert await first.then(acquire(rt, two), conn) is None
    assert acquired.result() == 2


async def test_partitions_are_created_once_by_concurrent_sweeps(
    rt: Runtime, first: FirstSession, clock: Clock, conn: Connection
) -> None:
    await clock.forward(100 * 86_400)
    await first.reopen()
    before = await value(conn, "SELECT count(*) FROM pg_partition_tree('draftsman.job_events')")
    async with first.doing(first.rt.archives.make_partitions(LeaderTerm())) as created:
        second_sweep = await first.then(rt.archives.make_partitions(LeaderTerm()), conn)
    assert created.result() > 0
    assert second_sweep == 0
    after = await value(conn, "SELECT count(*) FROM pg_partition_tree('draftsman.job_events')")
    assert after == before + created.result()


async def test_events_are_written_while_partitions_are_created(
    make: Factory, rt: Runtime, first: FirstSession, clock: Clock, conn: Connection
) -> None:
    """A concurrent insert of an event waits briefly, and neither fails."""
    await clock.forward(100 * 86_400)
    await first.reopen()
    async with first.doing(first.rt.archives.make_partitions(LeaderTerm())):
        number = await first.then(make.queued(), conn)
    assert len(await rt.read_model.job_events(number)) == 1
