"""Rescue: jobs of dead workers are queued again, and each type decides how they continue."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.run import LeaderTerm, RunStatus
from draftsman.runtime import Runtime
from draftsman.worker import store as worker
from draftsman_testing.factories import Factory
from tests.support.clock import Clock


async def _rescue(make: Factory, rt: Runtime, **fields: Any) -> int:
    """Rescue the run of a new job; return the job."""
    work = await make.running(**fields)
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    return work.number


async def test_the_time_until_a_rescue_is_not_running_time(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """No worker runs for a night: the job still has its whole time limit."""
    work = await make.running(on_lost="resume")
    await clock.forward(43_200)
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    next_run = await make.running(work.number)
    claim = rt.claim(make.worker, ("default",))
    assert await claim.previous_runtime(next_run.lease) < 60


@pytest.mark.parametrize(
    ("on_lost", "status"),
    [
        (OnLost.RETRY, Status.RETRYING),
        (OnLost.RESUME, Status.RESUMED),
        (OnLost.FAIL, Status.FAILED),
        (OnLost.NEW_JOB, Status.FAILED),
    ],
)
async def test_a_lost_run_uses_an_attempt_and_follows_on_lost(
    make: Factory, rt: Runtime, on_lost: OnLost, status: Status
) -> None:
    number = await _rescue(make, rt, on_lost=on_lost)
    job = await rt.read_model.job(number)
    (run,) = await rt.read_model.runs(number)
    assert (job.status, job.attempts, job.retry_count) == (status, 1, 0)
    assert (job.last_error, job.error_class) == ("the worker was lost", "TRANSIENT_INFRA")
    assert (run.status, run.error) == (RunStatus.INTERRUPTED, "the worker was lost")
    event = (await rt.read_model.job_events(number))[-1]
    assert (event.actor, event.payload["lost"]) == ("system", True)
    assert len(await rt.read_model.jobs()) == (2 if on_lost is OnLost.NEW_JOB else 1)
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 0


async def test_a_lost_run_that_is_retried_waits_as_after_an_infrastructure_failure(
    make: Factory, rt: Runtime
) -> None:
    job = await rt.read_model.job(await _rescue(make, rt, on_lost=OnLost.RETRY))
    assert job.next_retry_at is not None
    assert (job.next_retry_at - job.updated_at).total_seconds() == pytest.approx(2.718, abs=0.01)


async def test_a_new_job_is_created_once_without_a_checkpoint(make: Factory, rt: Runtime) -> None:
    work = await make.running(on_lost=OnLost.NEW_JOB, payload={"a": 1})
    await rt.checkpoints.save(work.lease, {"n": 1})
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
    new, old = await rt.read_model.jobs()
    job = await rt.read_model.job(new.number)
    assert old.number == work.number
    assert (job.status, job.retry_of, job.chain_length) == (Status.QUEUED, work.number, 1)
    assert (job.payload, job.on_lost, job.attempts) == ({"a": 1}, OnLost.NEW_JOB, 0)
    assert job.invoker_id == "internal:system"
    assert await rt.checkpoints.latest(new.number) == (None, None)
    [created] = await rt.read_model.job_events(new.number)
    assert created.kind == "job_created"
    assert "lost" not in created.payload
    by_hand = await rt.job_control.retry(work.number, make.owner)
    assert (by_hand.number, by_hand.outcome) == (new.number, "deduplicated")


async def _rescue_repeatedly(make: Factory, rt: Runtime, number: int) -> list[int]:
    """Rescue a job and each job that replaces it; return all of them."""
    numbers = [number]
    while (await rt.read_model.job(number)).status is Status.QUEUED:
        await make.running(number)
        assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
        newest = (await rt.read_model.jobs())[0].number
        numbers += [newest] if newest != number else []
        number = newest
    return numbers


async def test_a_chain_of_new_jobs_is_as_long_as_the_attempts_of_the_first(
    make: Factory, rt: Runtime
) -> None:
    """Each job has its own counters: a job that kills its workers could continue forever."""
    number = await make.queued(on_lost=OnLost.NEW_JOB, max_attempts=3)
    jobs = [await rt.read_model.job(retry) for retry in await _rescue_repeatedly(make, rt, number)]
    assert [(job.chain_length, job.attempts, job.status) for job in jobs] == [
        (0, 1, Status.FAILED),
        (1, 1, Status.FAILED),
        (2, 1, Status.DEAD_LETTER),
    ]
    assert [job.retry_of for job in jobs] == [None, *(job.number for job in jobs[:-1])]
    assert jobs[1].last_error == "the worker was lost"
    reason = "the worker was lost; 3 of 3 jobs of its chain were lost"
    assert jobs[2].last_error == reason
    event = (await rt.read_model.job_events(jobs[2].number))[-1]
    assert (event.kind, event.payload) == (
        "job_dead_lettered",
        {
            "error": reason,
            "error_class": "TRANSIENT_INFRA",
            "attempts": 1,
            "retries": 0,
            "lost": True,
        },
    )


async def test_a_manual_retry_of_a_chain_resets_its_attempts(make: Factory, rt: Runtime) -> None:
    number = await make.queued(on_lost=OnLost.NEW_JOB, max_attempts=2)
    chain = await _rescue_repeatedly(make, rt, number)
    job = await rt.job_control.retry(chain[-1], make.owner)
    more = await _rescue_repeatedly(make, rt, job.number)
    assert (len(chain), len(more)) == (2, 2)
    last = await rt.read_model.job(more[-1])
    assert (last.status, last.chain_length) == (Status.DEAD_LETTER, 3)
    assert last.last_error == "the worker was lost; 2 of 2 jobs of its chain were lost"


async def test_a_chain_of_new_jobs_has_the_limit_of_manual_retries(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHAIN_LIMIT", 1)
    chain = await _rescue_repeatedly(
        make, rt, await make.queued(on_lost=OnLost.NEW_JOB, max_attempts=9)
    )
    last = await rt.read_model.job(chain[-1])
    assert (len(chain), last.status) == (2, Status.DEAD_LETTER)
    assert last.last_error == "the worker was lost; it was already retried 1 times"


async def test_a_job_without_a_new_job_has_the_reason_and_blocks_no_other_rescue(
    make: Factory, rt: Runtime, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A row of an older version may have the key that draftsman makes."""
    work = await make.running(on_lost="new_job")
    other = await make.running(on_lost="new_job")
    existing = row(invocation(type="noop"), make.owner, rt.limits)
    existing["idempotency_key"] = f"retry:{work.number}:1"
    existing["request_digest"] = "another"
    await submissions.submit(conn, [existing], "old")
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 2
    why = f"D-{other.number + 1} already uses the idempotency key of this retry"
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.actor, event.payload) == (
        "retry_not_created",
        "system",
        {"reason": why},
    )
    assert why in caplog.text
    assert (await rt.read_model.jobs())[0].status is Status.QUEUED
    assert [(await rt.read_model.job(job.number)).status for job in (work, other)] == ["failed"] * 2


async def test_a_new_job_takes_over_the_subject(make: Factory, rt: Runtime) -> None:
    work = await make.running(on_lost=OnLost.NEW_JOB, subject_key="card:1")
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    jobs = await rt.read_model.jobs()
    assert [(await rt.read_model.job(job.number)).subject_key for job in jobs] == ["card:1"] * 2
    assert (await rt.read_model.job(work.number)).status is Status.FAILED


@pytest.mark.parametrize("on_lost", OnLost)
async def test_lost_runs_use_the_budget_until_the_dead_letter(
    make: Factory, rt: Runtime, clock: Clock, on_lost: OnLost
) -> None:
    """A job that kills its workers must end."""
    if on_lost in (OnLost.FAIL, OnLost.NEW_JOB):
        number = await _rescue(make, rt, on_lost=on_lost, max_attempts=1)
    else:
        number = await make.queued(on_lost=on_lost, max_attempts=3)
        for _ in range(3):
            await make.running(number)
            await rt.dead_workers.rescue(LeaderTerm(), [make.worker])
            await clock.forward(60)
            await rt.promotion.promote(LeaderTerm())
    job = await rt.read_model.job(number)
    assert (job.status, job.attempts) == (Status.DEAD_LETTER, job.max_attempts)


@pytest.mark.parametrize("origin", [Status.QUEUED, Status.RESUMED])
async def test_a_lost_claim_is_released_without_using_an_attempt(
    make: Factory, rt: Runtime, origin: Status
) -> None:
    number = await make.job_in(origin)
    runs = len(await rt.read_model.runs(number))
    await make.claimed(number)
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    job = await rt.read_model.job(number)
    assert (job.status, job.attempts, job.last_error) == (origin, 0, None)
    assert len(await rt.read_model.runs(number)) == runs


async def test_a_lost_job_with_a_cancel_request_is_canceled(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, make.owner, "enough")
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    job = await rt.read_model.job(work.number)
    assert (job.status, job.attempts, job.cancel_reason) == (Status.CANCELED, 0, "enough")
    assert (await rt.read_model.runs(work.number))[0].status is RunStatus.CANCELED


async def test_a_silent_run_is_lost_after_its_lease(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    silent = await make.running(on_lost="resume")
    beating = await make.running(on_lost="resume")
    claim = rt.claim(make.worker, ())
    await clock.forward(299)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 0
    await claim.heartbeat([beating.lease], draining=False)
    await clock.forward(10)
    await claim.heartbeat([beating.lease], draining=False)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 1
    assert (await rt.read_model.job(silent.number)).status is Status.RESUMED
    assert (await rt.read_model.job(beating.number)).status is Status.RUNNING


async def test_a_claim_is_lost_after_its_lease_unless_its_worker_sends_heartbeats(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    work = await make.claimed()
    claim = rt.claim(make.worker, ())
    for _ in range(3):
        await clock.forward(200)
        await claim.heartbeat([], draining=False)
        assert await rt.dead_workers.rescue(LeaderTerm()) == 0
    await clock.forward(301)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 1
    assert (await rt.read_model.job(work.number)).status is Status.QUEUED


async def test_a_run_without_a_worker_row_is_alive_while_it_has_heartbeats(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """A deleted worker row must not hide a lost job, nor end a live run."""
    work = await make.running(on_lost="resume")
    await clock.forward(200)
    await rt.claim(make.worker, ()).heartbeat([work.lease], draining=False)
    await clock.forward(200)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 0
    await clock.forward(101)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 1


@pytest.mark.parametrize(
    "status",
    sorted({*Status} - {Status.CLAIMED, Status.RUNNING}, key=str),
    ids=str,
)
async def test_a_job_without_a_lease_is_not_rescued(
    make: Factory, rt: Runtime, clock: Clock, status: Status
) -> None:
    number = await make.job_in(status)
    before = await rt.read_model.job(number)
    await clock.forward(100_000)
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 0
    assert await rt.read_model.job(number) == before
