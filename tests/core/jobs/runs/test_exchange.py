"""The worker's exchange statement: settle finished runs and claim for the free slots."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from draftsman.database.database import Connection, Database
from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm, Lease, RunStatus
from draftsman.jobs.runs.service.claim import Claim
from draftsman.jobs.runs.store import run_state
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.statements import rows


@pytest.fixture
def claim(rt: Runtime, make: Factory) -> Claim:
    return rt.claim(make.worker, ("default",))


async def _settle(claim: Claim, *done: tuple[Lease, dict[str, Any]]) -> dict[int, Status]:
    results = await claim.exchange(done, types=["noop"], free=0, ahead=0)
    return {work.number: work.status for work in results}


async def test_a_finished_job_is_settled_and_its_slot_filled(
    make: Factory, rt: Runtime, claim: Claim
) -> None:
    work = await make.running(queue="default")
    following = await make.queued(queue="default")
    results = await claim.exchange([(work.lease, {"n": 1})], types=["noop"], free=1, ahead=0)
    assert [(result.number, result.status) for result in results] == [
        (work.number, Status.COMPLETED),
        (following, Status.RUNNING),
    ]
    job = await rt.read_model.job(work.number)
    assert (job.status, job.result, job.worker_id) == (Status.COMPLETED, {"n": 1}, None)
    (run,) = await rt.read_model.runs(work.number)
    assert (run.status, run.finished_at, run.result) == (RunStatus.COMPLETED, job.finished_at, None)
    assert job.updated_at == job.finished_at


async def test_a_job_that_was_only_claimed_is_not_settled(
    make: Factory, rt: Runtime, claim: Claim
) -> None:
    claimed = await make.claimed()
    good = await make.running()
    results = await _settle(claim, (claimed.lease, {}), (good.lease, {}))
    assert results == {good.number: Status.COMPLETED}
    assert (await rt.read_model.job(claimed.number)).status is Status.CLAIMED


async def test_a_settled_job_is_identified_by_its_lease(make: Factory, claim: Claim) -> None:
    work = await make.running()
    (settled,) = await claim.exchange([(work.lease, {})], types=[], free=0, ahead=0)
    assert (settled.number, settled.token, settled.run) == (work.number, work.token, 1)


async def test_a_canceled_job_settles_as_canceled_and_its_run_keeps_the_result(
    make: Factory, rt: Runtime, claim: Claim
) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, make.owner, "enough")
    assert await _settle(claim, (work.lease, {"n": 1})) == {work.number: Status.CANCELED}
    job = await rt.read_model.job(work.number)
    assert (job.status, job.result, job.cancel_reason) == (Status.CANCELED, None, "enough")
    (run,) = await rt.read_model.runs(work.number)
    assert (run.status, run.result) == (RunStatus.CANCELED, {"n": 1})


async def test_a_lost_lease_is_skipped_and_the_others_are_settled(
    make: Factory, rt: Runtime, claim: Claim
) -> None:
    lost = await make.running()
    good = await make.running()
    await rt.dead_workers.rescue(LeaderTerm(), [])
    stale = Lease(lost.number, 1, lost.token - 1 or 999)
    unknown = Lease(999, 1, 1)
    results = await _settle(claim, (stale, {}), (unknown, {}), (good.lease, {}))
    assert results == {good.number: Status.COMPLETED}
    assert (await rt.read_model.job(lost.number)).status is Status.RUNNING


async def test_a_locked_job_is_settled_by_the_next_call(
    make: Factory, rt: Runtime, claim: Claim, db: Database
) -> None:
    busy = await make.running()
    good = await make.running()
    done = [(busy.lease, {"n": 1}), (good.lease, {"n": 2})]
    async with db.transaction() as other:
        await other.execute(
            "SELECT 1 FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE", (busy.number,)
        )
        async with asyncio.timeout(5):
            assert await _settle(claim, *done) == {good.number: Status.COMPLETED}
    assert await _settle(claim, *done) == {busy.number: Status.COMPLETED}


async def test_settling_twice_changes_nothing(make: Factory, rt: Runtime, claim: Claim) -> None:
    work = await make.running()
    await _settle(claim, (work.lease, {"n": 1}))
    before = await rt.read_model.job(work.number)
    assert await _settle(claim, (work.lease, {"n": 2})) == {}
    assert await rt.read_model.job(work.number) == before


async def test_a_locked_job_is_not_claimed_and_does_not_block_the_next_job(
    make: Factory, claim: Claim, db: Database
) -> None:
    locked = await make.queued(queue="default")
    free = await make.queued(queue="default")
    async with db.transaction() as other:
        await other.execute(
            "SELECT 1 FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE", (locked,)
        )
        async with asyncio.timeout(5):
            results = await claim.exchange([], types=["noop"], free=9, ahead=0)
        assert [work.number for work in results] == [free]


async def test_an_uncommitted_child_does_not_hide_its_job(
    make: Factory, claim: Claim, db: Database
) -> None:
    """Foreign keys take a key-share lock on the job, which a claim must not skip."""
    number = await make.queued(queue="default")
    async with db.transaction() as other:
        await other.execute(
            "INSERT INTO draftsman.job_checkpoints (job, run, data) VALUES (%s, 0, '{}')", (number,)
        )
        results = await claim.exchange([], types=["noop"], free=1, ahead=0)
        assert [work.number for work in results] == [number]


async def test_concurrent_workers_share_the_queue(make: Factory, rt: Runtime) -> None:
    numbers = {await make.queued(queue="default") for _ in range(40)}
    claims = [rt.claim(uuid4(), ("default",)) for _ in range(8)]
    claimed: list[ClaimedJob] = []
    while len(claimed) < len(numbers):
        for results in await asyncio.gather(
            *(claim.exchange([], types=["noop"], free=2, ahead=0) for claim in claims)
        ):
            claimed += results
    assert sorted(work.number for work in claimed) == sorted(numbers)
    assert len({work.token for work in claimed}) == len(numbers)


async def test_a_heartbeat_reports_owned_runs_and_cancel_requests(
    make: Factory, rt: Runtime, claim: Claim
) -> None:
    owned, canceled, lost = [await make.running() for _ in range(3)]
    await rt.job_control.cancel(canceled.number, make.owner)
    stale = Lease(lost.number, 1, 999)
    registered, pulses = await claim.heartbeat([owned.lease, canceled.lease, stale], draining=False)
    assert not registered
    assert {state.token: (state.owned, state.canceled) for state in pulses} == {
        owned.token: (True, False),
        canceled.token: (True, True),
        stale.token: (False, False),
    }


async def test_a_heartbeat_updates_the_worker_and_its_own_runs_only(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    owned = await make.running()
    lost = await make.running()
    await clock.forward(100)
    claim = rt.claim(make.worker, ("default",))
    registered, _ = await claim.heartbeat([owned.lease, Lease(lost.number, 1, 999)], draining=True)
    assert registered
    (worker,) = await rt.read_model.workers()
    assert (worker.draining, worker.heartbeat_age < 100) == (True, True)
    (beating,) = await rt.read_model.runs(owned.number)
    (silent,) = await rt.read_model.runs(lost.number)
    assert (beating.heartbeat_at - silent.heartbeat_at).total_seconds() > 99


async def test_a_heartbeat_without_runs_keeps_its_worker_alive_and_no_other(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    other = await make.worker_row()
    await clock.forward(100)
    assert await rt.claim(make.worker, ()).heartbeat([], draining=False) == (True, [])
    ages = {worker.id: worker.heartbeat_age for worker in await rt.read_model.workers()}
    assert ages[make.worker] < 100 <= ages[other]


async def test_a_run_locked_by_another_transaction_is_still_owned(
    make: Factory, rt: Runtime, claim: Claim, db: Database, conn: Connection
) -> None:
    work = await make.running()
    async with db.transaction() as other:
        await other.execute("SELECT 1 FROM draftsman.job_runs FOR NO KEY UPDATE")
        async with asyncio.timeout(5):
            _, (state,) = await claim.heartbeat([work.lease], draining=False)
    assert state.owned


async def test_the_seconds_that_a_job_ran_before_add_up(
    make: Factory, rt: Runtime, claim: Claim, clock: Clock
) -> None:
    work = await make.running()
    for seconds in (100, 20):
        await clock.forward(seconds)
        await rt.settlement.release_run(work, "shutdown")
        await clock.forward(1000)
        work = await make.running(work.number)
    assert 120 <= await claim.previous_runtime(work.lease) < 1000, "not the time between"


async def test_only_the_earlier_runs_of_the_job_itself_count_as_its_runtime(
    make: Factory, rt: Runtime, claim: Claim, clock: Clock
) -> None:
    first = await make.running()
    other = await make.running()
    assert await claim.previous_runtime(first.lease) == 0
    await clock.forward(100)
    await rt.settlement.release_run(first, "shutdown")
    second = await make.running(first.number)
    await clock.forward(1000)
    await rt.settlement.release_run(second, "shutdown")
    await rt.settlement.release_run(other, "shutdown")
    assert 100 <= await claim.previous_runtime(second.lease) < 1000


async def test_a_lost_run_counts_until_its_last_heartbeat_and_a_failed_one_until_its_end(
    make: Factory, rt: Runtime, claim: Claim, clock: Clock
) -> None:
    lost = await make.running()
    failed = await make.running()
    await clock.forward(100)
    await claim.heartbeat([lost.lease, failed.lease], draining=False)
    await clock.forward(1000)
    await rt.settlement.failure(failed, Failure("the bank is closed"))
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    for work, least, most in ((lost, 100, 200), (failed, 1100, 1200)):
        next_run = Lease(work.number, 2, 0)
        assert least <= await claim.previous_runtime(next_run) < most


async def test_a_heartbeat_renews_each_run_for_itself(
    make: Factory, rt: Runtime, claim: Claim, db: Database
) -> None:
    """A worker may hold two leases of one job; one run is locked, and one job is unknown."""
    first = await make.running()
    old = await make.running()
    locked = await make.running()
    await rt.settlement.release_run(old, "shutdown")
    new = await make.running(old.number)
    unknown = Lease(999, 1, 999)
    await rt.job_control.pause(first.number, make.owner, "later")
    async with db.transaction() as other:
        lock = "SELECT FROM draftsman.job_runs WHERE job = %s FOR NO KEY UPDATE"
        await other.execute(lock, (locked.number,))
        async with asyncio.timeout(5):
            _, states = await claim.heartbeat(
                [first.lease, old.lease, new.lease, locked.lease, unknown], draining=False
            )
    assert {state.token: (state.owned, state.renewed, state.paused) for state in states} == {
        first.token: (True, True, True),
        old.token: (False, False, False),
        new.token: (True, True, False),
        locked.token: (True, False, False),
        unknown.token: (False, False, False),
    }


async def test_a_heartbeat_renews_the_reservations_of_its_jobs_that_have_not_expired(
    make: Factory, rt: Runtime, claim: Claim, conn: Connection
) -> None:
    """One ends at the very time of the heartbeat: a claim at that time takes other jobs of it."""
    live, due, foreign = [await make.running() for _ in range(3)]
    reservation = (
        "INSERT INTO draftsman.queue_reservations"
        " (queue, job, actor, seconds, reserved_at, expires_at)"
        " VALUES (%s, %s, 'anna', 600, draftsman.now() - interval '1 h', draftsman.now() + %s)"
    )
    async with conn.transaction():
        for queue, job, seconds in (("live", live, 1), ("due", due, 0), ("foreign", foreign, 1)):
            await conn.execute(reservation, (queue, job.number, timedelta(seconds=seconds)))
        leases = [live.lease, due.lease]
        await run_state.heartbeat(conn, make.worker, leases, draining=False)
        left = await rows(
            conn,
            "SELECT queue, extract(epoch FROM expires_at - draftsman.now())::int"
            " FROM draftsman.queue_reservations ORDER BY queue",
        )
    assert left == [("due", 0), ("foreign", 1), ("live", 600)]


async def test_a_worker_still_has_only_its_own_leases_of_those_it_asks_for(
    make: Factory, rt: Runtime, claim: Claim
) -> None:
    asked_for, not_asked_for = [await make.running(queue="default") for _ in range(2)]
    foreign = await make.running(worker=uuid4(), queue="default")
    worker = rt.claim(make.worker, ("default",))
    assert await worker.held([asked_for.lease, foreign.lease]) == {asked_for.token}
    assert not_asked_for.token not in await worker.held([asked_for.lease])


async def test_the_ticket_is_that_of_the_job(make: Factory, conn: Connection) -> None:
    urls = [f"https://tickets.example.org/{number}" for number in (1, 2)]
    jobs = [await make.queued(url=url) for url in urls]
    assert [await run_state.ticket_url(conn, job) for job in jobs] == urls


async def test_the_runs_of_a_job_have_their_order_whatever_that_of_the_table(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    """A new version of the first run lies behind the second one."""
    work = await make.running()
    await rt.settlement.release_run(work, "shutdown")
    await make.running(work.number)
    await conn.execute("SET session_replication_role = replica")
    rewritten = "UPDATE draftsman.job_runs SET ordinal = ordinal WHERE job = %s AND ordinal = 1"
    await conn.execute(rewritten, (work.number,))
    await conn.execute("SET enable_indexscan = off")
    await conn.execute("SET enable_bitmapscan = off")
    assert [run.ordinal for run in await run_state.runs(conn, work.number)] == [1, 2]
