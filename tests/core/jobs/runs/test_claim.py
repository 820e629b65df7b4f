"""Claims: order, number, types and queues of the jobs, and their release."""

from __future__ import annotations

from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, Lease, RunStatus
from draftsman.jobs.runs.service.claim import Claim
from draftsman.jobs.runs.store.claim import exchange
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.statements import run


@pytest.fixture
def claim(rt: Runtime, make: Factory) -> Claim:
    return rt.claim(make.worker, ("default",))


async def _claim_numbers(
    claim: Claim, free: int, ahead: int = 0, types: tuple[str, ...] = ("noop",)
) -> list[ClaimedJob]:
    return await claim.exchange([], types=types, free=free, ahead=ahead)


async def test_an_empty_queue_has_no_claims(claim: Claim) -> None:
    assert await _claim_numbers(claim, 10, 10) == []


async def test_the_order_is_priority_then_position(make: Factory, claim: Claim) -> None:
    priorities = [0, 5, 0, -5, 5]
    numbers = [await make.queued(queue="default", priority=p) for p in priorities]
    order = [numbers[place] for place in (1, 4, 0, 2, 3)]
    assert [work.number for work in await _claim_numbers(claim, 2)] == order[:2]
    assert [work.number for work in await _claim_numbers(claim, 9)] == order[2:]


async def test_the_order_of_claims_does_not_depend_on_the_plan(
    make: Factory, conn: Connection
) -> None:
    numbers = [await make.queued(queue="default", priority=p) for p in (0, 5, -5, 9)]
    await conn.execute("DISCARD PLANS")
    async with conn.transaction():
        for kind in ("indexscan", "indexonlyscan", "bitmapscan"):
            await conn.execute(f"SET LOCAL enable_{kind} = off")
        claimed = await exchange(
            conn, [], worker=uuid4(), queues=["default"], types=["noop"], free=2, ahead=0
        )
    assert [work.number for work in claimed] == [numbers[3], numbers[1]]


async def test_a_job_can_be_moved_and_the_older_job_of_a_position_comes_first(
    make: Factory, claim: Claim, conn: Connection
) -> None:
    numbers = [await make.queued(queue="default") for _ in range(3)]
    move = "UPDATE draftsman.job_states SET position = 1 WHERE number = ANY (%s)"
    await run(conn, move, (numbers[1:],))
    assert [work.number for work in await _claim_numbers(claim, 9)] == [*numbers[1:], numbers[0]]


async def test_a_resumed_job_keeps_its_position(make: Factory, claim: Claim) -> None:
    first = await make.running(queue="default")
    later = await make.queued(queue="default")
    await make.rt.settlement.release_run(first, "shutdown")
    assert [work.number for work in await _claim_numbers(claim, 9)] == [first.number, later]


async def test_a_claim_starts_jobs_for_free_slots_and_prefetches_the_requested_number(
    make: Factory, claim: Claim
) -> None:
    numbers = [await make.queued(queue="default") for _ in range(6)]
    claimed = await _claim_numbers(claim, 2, 3)
    assert [(work.number, work.status, work.run) for work in claimed] == [
        (numbers[0], Status.RUNNING, 1),
        (numbers[1], Status.RUNNING, 1),
        (numbers[2], Status.CLAIMED, 0),
        (numbers[3], Status.CLAIMED, 0),
        (numbers[4], Status.CLAIMED, 0),
    ]


async def test_a_claimed_job_is_not_claimed_again(make: Factory, claim: Claim, rt: Runtime) -> None:
    await make.queued(queue="default")
    assert len(await _claim_numbers(claim, 1)) == 1
    assert await _claim_numbers(rt.claim(uuid4(), ("default",)), 1) == []


@pytest.mark.parametrize(
    "status", sorted({*Status} - {Status.QUEUED, Status.RESUMED}, key=str), ids=str
)
async def test_only_jobs_that_wait_for_a_worker_are_claimed(
    make: Factory, claim: Claim, status: Status
) -> None:
    await make.job_in(status, queue="default")
    assert await _claim_numbers(claim, 9) == []


async def test_queues_are_served_in_the_order_named_and_others_not_at_all(
    make: Factory, rt: Runtime
) -> None:
    numbers = {queue: await make.queued(queue=queue) for queue in ("a", "b", "c")}
    claim = rt.claim(make.worker, ("c", "a"))
    claimed = await _claim_numbers(claim, 9)
    assert [work.number for work in claimed] == [numbers["c"], numbers["a"]]


async def test_a_full_first_queue_precedes_the_second(make: Factory, rt: Runtime) -> None:
    for queue in ("a", "a", "b"):
        await make.queued(queue=queue, priority=9 if queue == "b" else 0)
    claimed = await _claim_numbers(rt.claim(make.worker, ("a", "b")), 1, 1)
    assert [work.queue for work in claimed] == ["a", "a"]


@pytest.mark.parametrize("free", [9, 0])
async def test_only_own_types_are_claimed_and_others_block_nothing(
    make: Factory, claim: Claim, free: int
) -> None:
    await make.queued(queue="default", type="odd", priority=9)
    number = await make.queued(queue="default")
    assert [work.number for work in await _claim_numbers(claim, free, 9)] == [number]


async def test_each_claim_has_a_new_token_and_each_run_an_ordinal(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    number = await make.queued(queue="default")
    leases = []
    for _ in range(3):
        (work,) = await _claim_numbers(claim, 1)
        leases.append(work.lease)
        await rt.settlement.release_run(work, "shutdown")
    assert [lease.run for lease in leases] == [1, 2, 3]
    assert len({lease.token for lease in leases}) == 3
    assert [run.ordinal for run in await rt.read_model.runs(number)] == [1, 2, 3]


async def test_a_run_has_the_data_of_its_claim(make: Factory, claim: Claim, rt: Runtime) -> None:
    number = await make.queued(queue="default", overrides={"model": "small"})
    (work,) = await _claim_numbers(claim, 1)
    (run,) = await rt.read_model.runs(number)
    assert run.params_snapshot == work.overrides == {"model": "small"}
    assert (run.worker_id, run.lease_token) == (make.worker, work.token)


async def test_a_started_job_has_the_time_of_its_first_start(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    first = await rt.read_model.job(work.number)
    await rt.settlement.release_run(work, "shutdown")
    next_run = await rt.read_model.job((await make.running(work.number)).number)
    assert first.started_at == next_run.started_at
    assert first.claimed_at is not None
    assert next_run.claimed_at is not None
    assert next_run.claimed_at > first.claimed_at


async def test_a_prefetched_job_starts_when_a_slot_is_free(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    work = await make.claimed(queue="default")
    (started,) = await claim.start([work.lease])
    assert (started.status, started.run, started.token) == (Status.RUNNING, 1, work.token)
    assert [run.status for run in await rt.read_model.runs(work.number)] == ["running"]


async def test_a_prefetched_job_that_was_canceled_or_lost_does_not_start(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    canceled, lost, good = [await make.claimed() for _ in range(3)]
    await rt.job_control.cancel(canceled.number, make.owner)
    wrong = Lease(lost.number, 0, lost.token + 1000)
    claimed = await claim.start([canceled.lease, wrong, good.lease, Lease(999, 0, 1)])
    assert [work.number for work in claimed] == [good.number]
    assert (await rt.read_model.job(lost.number)).status is Status.CLAIMED


@pytest.mark.parametrize("origin", [Status.QUEUED, Status.RESUMED])
async def test_a_released_claim_restores_the_status_without_using_an_attempt(
    make: Factory, claim: Claim, rt: Runtime, origin: Status
) -> None:
    number = await make.job_in(origin)
    before = await rt.read_model.job(number)
    work = await make.claimed(number)
    await claim.release_claims([work.lease], "the worker stops")
    job = await rt.read_model.job(number)
    assert (job.status, job.claimed_from, job.worker_id) == (origin, None, None)
    assert (job.run_count, job.attempts, job.retry_count, job.position) == (
        before.run_count,
        0,
        0,
        before.position,
    )
    event = (await rt.read_model.job_events(number))[-1]
    assert (event.kind, event.payload) == ("job_returned", {"reason": "the worker stops"})


async def test_a_running_or_foreign_job_is_not_released(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    running = await make.running()
    claimed = await make.claimed()
    await claim.release_claims([running.lease, Lease(claimed.number, 0, 999)], "the worker stops")
    assert (await rt.read_model.job(running.number)).status is Status.RUNNING
    assert (await rt.read_model.job(claimed.number)).status is Status.CLAIMED


async def test_a_claim_unknown_to_its_worker_is_released_or_canceled(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    known = await make.running()
    claimed = await make.claimed()
    running = await make.running()
    canceled = await make.running()
    of_another = await make.running(worker=uuid4())
    await rt.job_control.cancel(canceled.number, make.owner)
    assert await claim.release_lost_claims([known.lease]) == 3
    works = (known, of_another, claimed, running, canceled)
    assert [(await rt.read_model.job(work.number)).status for work in works] == [
        Status.RUNNING,
        Status.RUNNING,
        Status.QUEUED,
        Status.RESUMED,
        Status.CANCELED,
    ]
    released = (await rt.read_model.job_events(claimed.number))[-1]
    assert released.payload["reason"] == "the reply to the claim was lost"


async def test_the_runs_of_lost_claims_end_and_no_others(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    again = await make.running()
    await rt.settlement.release_run(again, "shutdown")
    known, running, canceled = [await make.running() for _ in range(3)]
    await make.claimed(again.number)
    await rt.job_control.cancel(canceled.number, make.owner)
    [ended] = await rt.read_model.runs(again.number)
    assert await claim.release_lost_claims([known.lease]) == 3
    assert await rt.read_model.runs(again.number) == [ended]
    runs = [(await rt.read_model.runs(work.number))[0] for work in (known, running, canceled)]
    assert [run.status for run in runs] == [
        RunStatus.RUNNING,
        RunStatus.INTERRUPTED,
        RunStatus.CANCELED,
    ]


async def test_a_start_is_written_down_with_its_times(
    make: Factory, claim: Claim, rt: Runtime, clock: Clock
) -> None:
    other = await make.claimed()
    work = await make.claimed()
    await clock.forward(100)
    (started,) = await claim.start([work.lease])
    job = await rt.read_model.job(work.number)
    assert (started.number, started.id) == (work.number, job.id)
    assert job.started_at == job.updated_at
    assert (job.updated_at - job.created_at).total_seconds() >= 100
    await rt.settlement.release_run(started, "shutdown")
    await clock.forward(100)
    await claim.start([(await make.claimed(work.number)).lease])
    later = await rt.read_model.job(work.number)
    assert later.started_at == job.started_at, "the first start counts"
    assert (await rt.read_model.job(other.number)).status is Status.CLAIMED


async def test_only_the_claim_itself_is_released(
    make: Factory, claim: Claim, rt: Runtime, clock: Clock
) -> None:
    other = await make.claimed()
    work = await make.claimed()
    await clock.forward(100)
    await claim.release_claims([work.lease], "the worker stops")
    job = await rt.read_model.job(work.number)
    assert job.status is Status.QUEUED
    assert (job.updated_at - job.created_at).total_seconds() >= 100
    assert (await rt.read_model.job(other.number)).status is Status.CLAIMED


async def test_a_job_has_started_with_its_first_run(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.queued()
    await clock.forward(100)
    work = await make.running(number)
    first = await rt.read_model.job(number)
    assert first.started_at == first.updated_at
    assert (first.updated_at - first.created_at).total_seconds() >= 100
    await rt.settlement.release_run(work, "shutdown")
    await clock.forward(100)
    await make.running(number)
    assert (await rt.read_model.job(number)).started_at == first.started_at


async def test_each_job_is_listed_with_its_own_open_run(make: Factory, claim: Claim) -> None:
    again = await make.running()
    await make.rt.settlement.release_run(again, "shutdown")
    again = await make.running(again.number)
    work = await make.running()
    queued = await make.queued()
    await make.running()
    rows = await claim.open_runs([queued, work.number, again.number])
    assert sorted((number, run) for number, _, run in rows if run) == [
        (again.number, 2),
        (work.number, 1),
    ]
    assert [number for number, _, run in rows if run is None] == [queued]


async def test_each_claim_comes_with_its_own_request(
    make: Factory, claim: Claim, rt: Runtime
) -> None:
    numbers = [await make.queued(queue="default", payload={"n": n}) for n in range(3)]
    claimed = await _claim_numbers(claim, 2, 1)
    assert [(work.number, work.payload) for work in claimed] == [
        (number, {"n": n}) for n, number in enumerate(numbers)
    ]
    await rt.settlement.release_run(claimed[0], "shutdown")
    [ahead] = await _claim_numbers(claim, 0, 1)
    assert (ahead.number, ahead.run) == (numbers[0], 0), "a claim is no run"
