"""Jobs that were lost together: the job that ends its workers is found, others spend nothing."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

from draftsman.database.database import Connection
from draftsman.deliveries.store import deliveries
from draftsman.ids import job_name
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import DEADLINE
from tests.support.clock import Clock
from tests.support.statements import rows

S = Status


async def crash(rt: Runtime, make: Factory, jobs: list[int], **fields: Any) -> list[ClaimedJob]:
    """Run these jobs on a worker, which dies; the promotion of those that are due comes first."""
    await rt.promotion.promote(LeaderTerm())
    worker = await make.worker_row()
    runs = [await make.running(job, worker=worker, **fields) for job in jobs]
    assert await rt.dead_workers.rescue(LeaderTerm(), [worker]) == len(jobs)
    await rt.dead_workers.suspects(LeaderTerm())
    return runs


async def crash_twice(rt: Runtime, make: Factory, clock: Clock, jobs: list[int]) -> None:
    """Lose these jobs together, and again when they have run for as long as the first time."""
    for _ in range(2):
        await crash(rt, make, jobs)
        await clock.forward(5)  # the delay of a retry


async def claimable(rt: Runtime, jobs: list[int]) -> list[int]:
    """Return those of the jobs that a worker may run now."""
    await rt.promotion.promote(LeaderTerm())
    found = [await rt.read_model.job(number) for number in jobs]
    return [job.number for job in found if job.status in (S.QUEUED, S.RESUMED)]


async def complete(rt: Runtime, work: ClaimedJob) -> None:
    assert await rt.settlement.outcome(work, Done({})) is S.COMPLETED


async def attempts(rt: Runtime, jobs: list[int]) -> list[int]:
    return [(await rt.read_model.job(number)).attempts for number in jobs]


async def test_jobs_that_were_lost_together_once_run_again_as_usual_and_spend_no_attempt(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    """Most workers are ended by a person, a deployment or the machine, not by a job."""
    jobs = [await make.queued(on_lost=on_lost) for on_lost in ("retry", "resume", "retry")]
    await crash(rt, make, jobs)
    assert await attempts(rt, jobs) == [0, 0, 0]
    assert await claimable(rt, jobs) == [jobs[1]]
    await clock.forward(5)
    assert sorted(await claimable(rt, jobs)) == sorted(jobs)
    for number in jobs:
        await complete(rt, await make.running(number))
    await rt.dead_workers.suspects(LeaderTerm())
    assert await rows(conn, "SELECT FROM draftsman.suspects") == []


async def test_jobs_that_were_lost_together_twice_run_one_at_a_time_and_spend_no_attempt(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    jobs = [await make.queued(on_lost=on_lost) for on_lost in ("retry", "resume", "retry")]
    await crash_twice(rt, make, clock, jobs)
    assert await attempts(rt, jobs) == [0, 0, 0]
    assert [(await rt.read_model.job(number)).last_error for number in jobs] == [
        "the worker was lost; its jobs are tried one at a time"
    ] * len(jobs)
    for place, number in enumerate(jobs):
        assert await claimable(rt, jobs) == [number]
        work = await make.running(number)
        await rt.dead_workers.suspects(LeaderTerm())
        assert await claimable(rt, jobs) == [], "its trial goes on"
        await complete(rt, work)
        await rt.dead_workers.suspects(LeaderTerm())
        assert len(await rows(conn, "SELECT FROM draftsman.suspects")) == len(jobs) - place - 1


async def test_a_suspect_names_the_job_that_runs_before_it(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    first, second = jobs = [await make.queued() for _ in range(2)]
    await crash_twice(rt, make, clock, jobs)
    waits = await rt.read_model.why(second)
    assert (waits.reason, waits.due_in) == ("trial", None)
    assert f"{job_name(first)} runs before it: draftsman why {job_name(first)}" in waits.next_step
    listed = {job.number: job.hold for job in (await rt.read_model.page()).jobs}
    assert listed == {first: None, second: "trial"}


async def test_messages_name_no_time_at_which_a_suspect_runs_again(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    first, second = jobs = [await make.queued(notify=("log",)) for _ in range(2)]
    await crash_twice(rt, make, clock, jobs)
    shown = {}
    for number in jobs:
        (seq,) = await rows(conn, "SELECT seq FROM draftsman.deliveries WHERE job = %s", [number])
        shown[number] = (await deliveries.message_facts(conn, seq[0])).next_retry_at is not None
    assert shown == {first: True, second: False}


async def test_the_job_that_ends_its_workers_is_convicted_and_its_neighbors_complete(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    first = await make.queued(on_lost="resume")
    poison = await make.queued(on_lost="resume", max_attempts=2)
    neighbors = [first, *[await make.queued(on_lost="resume") for _ in range(2)]]
    jobs = [first, poison, *neighbors[1:]]
    await crash_twice(rt, make, clock, jobs)
    assert await claimable(rt, jobs) == [first]
    work = await make.running(first)
    await complete(rt, work)
    await rt.dead_workers.suspects(LeaderTerm())
    assert await claimable(rt, jobs) == [poison]
    beside = await make.queued(on_lost="resume")
    await crash(rt, make, [poison, beside])
    assert await attempts(rt, [poison, beside]) == [1, 0]
    waiting = [poison, *neighbors[1:], beside]
    assert sorted(await claimable(rt, waiting)) == sorted(waiting), "the others are released"
    await crash(rt, make, waiting)
    assert await attempts(rt, waiting) == [2, 0, 0, 0]
    assert (await rt.read_model.job(poison)).status is S.DEAD_LETTER
    assert sorted(await claimable(rt, waiting)) == sorted(waiting[1:])


async def test_a_suspect_that_outlives_its_lost_run_is_acquitted_and_goes_on(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    jobs = [await make.queued(on_lost="resume") for _ in range(2)]
    await crash(rt, make, jobs)
    worker = await make.worker_row()
    for number in jobs:
        await make.running(number, worker=worker)
    await clock.forward(60)
    assert await rt.dead_workers.rescue(LeaderTerm(), [worker]) == 2
    await rt.dead_workers.suspects(LeaderTerm())
    assert await claimable(rt, jobs) == jobs[:1]
    await make.running(jobs[0])
    await clock.forward(50)
    await rt.dead_workers.suspects(LeaderTerm())
    assert await claimable(rt, jobs) == []
    await clock.forward(20)
    await rt.dead_workers.suspects(LeaderTerm())
    assert await claimable(rt, jobs) == jobs[1:]


async def test_a_run_that_was_alone_spends_an_attempt(rt: Runtime, make: Factory) -> None:
    number = await make.queued(on_lost="resume")
    await crash(rt, make, [number])
    assert await attempts(rt, [number]) == [1]
    assert await claimable(rt, [number]) == [number]


async def test_two_suspects_of_different_crashes_that_are_lost_together_are_tried_again(
    rt: Runtime, make: Factory
) -> None:
    first = [await make.queued(on_lost="resume") for _ in range(2)]
    second = [await make.queued(on_lost="resume") for _ in range(2)]
    for jobs in (first, second, first, second):
        await crash(rt, make, jobs)
    trials = [first[0], second[0]]
    assert await claimable(rt, [*first, *second]) == trials
    await crash(rt, make, trials)
    assert await attempts(rt, trials) == [0, 0]
    assert await claimable(rt, [*first, *second]) == [first[0], first[1], second[1]]


async def test_runs_that_lost_only_their_leases_are_no_suspects(
    rt: Runtime, make: Factory, clock: Clock, conn: Connection
) -> None:
    """After an outage of the database, all runs of a worker may be lost, but it did not die."""
    worker: UUID = uuid4()
    for _ in range(2):
        await make.running(worker=worker, on_lost="resume")
    await clock.forward(rt.settings.worker.lease + 1)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 2
    assert await rows(conn, "SELECT FROM draftsman.suspects") == []


async def test_the_runs_of_a_worker_that_are_rescued_in_batches_are_suspects_together(
    rt: Runtime, make: Factory
) -> None:
    jobs = [await make.queued(on_lost="resume") for _ in range(3)]
    await crash(rt, make, jobs)
    worker = await make.worker_row()
    for number in jobs:
        await make.running(number, worker=worker)
    rt.dead_workers._limit = 1
    for _ in jobs:
        assert await rt.dead_workers.rescue(LeaderTerm(), [worker]) == 1
    await rt.dead_workers.suspects(LeaderTerm())
    assert await attempts(rt, jobs) == [0, 0, 0]
    assert await claimable(rt, jobs) == jobs[:1]


async def test_a_locked_suspect_keeps_no_other_waiting(
    rt: Runtime, make: Factory, conn: Connection, clock: Clock
) -> None:
    """A transaction that stays open, such as that of a caller who submits a dependent job."""
    locked, second = [[await make.queued(on_lost="resume") for _ in range(2)] for _ in range(2)]
    for jobs in (locked, second, locked, second):
        await crash(rt, make, jobs)
    assert await claimable(rt, [*locked, *second]) == [locked[0], second[0]]
    for first in (locked[0], second[0]):
        await complete(rt, await make.running(first))
    await conn.execute("BEGIN")
    await conn.execute("SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", locked[1:])
    async with asyncio.timeout(DEADLINE):
        await rt.dead_workers.suspects(LeaderTerm())
    assert await claimable(rt, [locked[1], second[1]]) == [second[1]]
    await conn.execute("COMMIT")
    await rt.dead_workers.suspects(LeaderTerm())
    assert await claimable(rt, [locked[1]]) == [locked[1]]
