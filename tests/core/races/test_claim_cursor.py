"""Claims that begin after a job, beside the claims and locks of another session."""

from __future__ import annotations

from draftsman.database.database import Connection
from draftsman.jobs.runs.service.claim import Claim
from draftsman.jobs.runs.store import claim as store
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.races import FirstSession


async def _claim(claim: Claim, free: int, after: int | None = None) -> list[int]:
    jobs = await claim.exchange([], types=["noop"], free=free, ahead=0, after=after)
    return [job.number for job in jobs]


async def test_claims_of_two_sessions_take_each_job_once_and_leave_none(
    rt: Runtime, first: FirstSession, make: Factory
) -> None:
    jobs = [await make.queued(queue="q") for _ in range(6)]
    here = rt.claim(make.worker, ("q",))
    there = first.rt.claim(await make.worker_row(queues=["q"]), ("q",))
    assert await _claim(here, 1) == jobs[:1]
    async with first.doing(_claim(there, 2, after=jobs[0])) as claimed:
        assert await _claim(here, 1, after=jobs[0]) == jobs[3:4], "it waits for nothing"
    assert claimed.result() == jobs[1:3]
    assert await _claim(here, 9, after=jobs[3]) == jobs[4:]
    assert await _claim(here, 9) == []


async def test_a_job_that_was_locked_is_behind_the_cursor_and_found_from_the_start(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    jobs = [await make.queued(queue="q") for _ in range(4)]
    claim = rt.claim(make.worker, ("q",))
    async with first.doing(
        first.rt.db.run_transaction(lambda held: store.keep_from_claims(held, jobs[1:2]))
    ):
        assert await _claim(claim, 2) == [jobs[0], jobs[2]]
    assert await _claim(claim, 1, after=jobs[2]) == jobs[3:]
    assert await _claim(claim, 1) == jobs[1:2]
