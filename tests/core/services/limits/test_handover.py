"""Workers with limits: the exchange claims the jobs that get the places of the runs it settles."""

from __future__ import annotations

from uuid import uuid4

from draftsman.domain.job import Status
from draftsman.domain.run import ClaimedJob
from draftsman.runtime import Runtime
from draftsman.services.runs.claim import Claim
from draftsman.store.postgres.database import Connection
from tests.factories import Factory
from tests.support.limits import check_places, set_limits


async def _exchange(claim: Claim, done: list[ClaimedJob]) -> list[int]:
    jobs = await claim.exchange(
        [(job.lease, {}) for job in done], types=["noop"], skip=[], free=2, ahead=0
    )
    done[:] = [job for job in jobs if job.status is Status.RUNNING]
    return [job.number for job in done]


async def test_a_worker_claims_the_next_jobs_with_the_end_of_the_last(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    numbers = [await make.queued(queue="q") for _ in range(5)]
    claim, done = Claim(rt.db, make.worker, ("q",), limited=True), list[ClaimedJob]()
    assert await _exchange(claim, done) == [numbers[0]]
    assert await _exchange(claim, done) == []  # its snapshot is older than the place
    assert await _exchange(claim, done) == [numbers[1]]
    assert await _exchange(claim, done) == [
        numbers[2]
    ]  # settled and claimed in the same transaction
    assert await _exchange(claim, done) == [numbers[3]]
    assert await _exchange(claim, done) == [numbers[4]]
    assert await _exchange(claim, done) == []
    assert (await rt.read_model.job(numbers[4])).status is Status.COMPLETED
    await check_places(rt)


async def test_a_worker_without_limits_needs_a_single_statement(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    numbers = [await make.queued(queue="q") for _ in range(3)]
    claim, done = Claim(rt.db, uuid4(), ("q",)), list[ClaimedJob]()
    assert await _exchange(claim, done) == [numbers[0]]
    assert await _exchange(claim, done) == []
    assert await _exchange(claim, done) == [numbers[1]]
    assert await _exchange(claim, done) == []
