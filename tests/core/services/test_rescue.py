"""Rescue: what dead hands held goes back, and each type says what follows."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.domain.job import OnLost, Status
from draftsman.domain.run import RunStatus
from draftsman.runtime import Runtime
from draftsman.services import operate
from draftsman.store.sweeps import Term
from tests.factories import Factory
from tests.support.clock import Clock


async def _lose(make: Factory, rt: Runtime, **fields: Any) -> int:
    """Let the worker of a new job's run die; return the job."""
    work = await make.running(**fields)
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 1
    return work.number


async def test_the_time_until_a_loss_is_noticed_is_no_running_time(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """Nobody is there for a night: the job has its whole time limit still."""
    work = await make.running(on_lost="resume")
    await clock.forward(43_200)
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 1
    again = await make.running(work.number)
    claim = rt.claim(make.worker, ("default",))
    assert await claim.ran_before(again.lease) < 60


@pytest.mark.parametrize(
    ("on_lost", "status"),
    [
        (OnLost.RETRY, Status.RETRYING),
        (OnLost.RESUME, Status.RESUMED),
        (OnLost.FAIL, Status.FAILED),
        (OnLost.NEW_JOB, Status.FAILED),
    ],
)
async def test_a_lost_run_spends_an_attempt_and_follows_on_lost(
    make: Factory, rt: Runtime, on_lost: OnLost, status: Status
) -> None:
    number = await _lose(make, rt, on_lost=on_lost)
    job = await rt.inspect.job(number)
    (run,) = await rt.inspect.runs(number)
    assert (job.status, job.attempts, job.retry_count) == (status, 1, 0)
    assert (job.last_error, job.error_class) == ("the worker was lost", "TRANSIENT_INFRA")
    assert (run.status, run.error) == (RunStatus.INTERRUPTED, "the worker was lost")
    event = (await rt.inspect.trail(number))[-1]
    assert (event.actor, event.payload["lost"]) == ("system", True)
    assert len(await rt.inspect.jobs()) == (2 if on_lost is OnLost.NEW_JOB else 1)
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 0


async def test_a_lost_run_that_is_retried_waits_as_after_an_infrastructure_failure(
    make: Factory, rt: Runtime
) -> None:
    job = await rt.inspect.job(await _lose(make, rt, on_lost=OnLost.RETRY))
    assert job.next_retry_at is not None
    assert (job.next_retry_at - job.updated_at).total_seconds() == pytest.approx(2.718, abs=0.01)


async def test_a_new_job_is_made_once_and_starts_fresh(make: Factory, rt: Runtime) -> None:
    work = await make.running(on_lost=OnLost.NEW_JOB, payload={"a": 1})
    await rt.checkpoints.save(work.lease, {"n": 1})
    await rt.sweeps.rescue(Term(), [make.worker])
    await rt.sweeps.rescue(Term(), [make.worker])
    new, old = await rt.inspect.jobs()
    job = await rt.inspect.job(new.number)
    assert old.number == work.number
    assert (job.status, job.retry_of, job.chain_length) == (Status.QUEUED, work.number, 1)
    assert (job.payload, job.on_lost, job.attempts) == ({"a": 1}, OnLost.NEW_JOB, 0)
    assert job.invoker_id == "internal:system"
    assert await rt.checkpoints.latest(new.number) == (None, None)
    [created] = await rt.inspect.trail(new.number)
    assert created.kind == "job_created"
    assert "lost" not in created.payload
    by_hand = await rt.operate.retry(work.number, make.owner)
    assert (by_hand.number, by_hand.how) == (new.number, "deduplicated")


async def test_a_chain_of_new_jobs_ends_and_harms_no_other_rescue(
    make: Factory, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operate, "CHAIN_LIMIT", 1)
    number = await _lose(make, rt, on_lost=OnLost.NEW_JOB)
    ((second, _),) = [
        (job.number, job.status) for job in await rt.inspect.jobs() if job.number != number
    ]
    chained, other = await make.running(second), await make.running(on_lost=OnLost.RESUME)
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 2
    assert (await rt.inspect.job(chained.number)).status is Status.FAILED
    assert (await rt.inspect.job(other.number)).status is Status.RESUMED
    assert len(await rt.inspect.jobs()) == 3


async def test_a_new_job_takes_over_the_subject(make: Factory, rt: Runtime) -> None:
    work = await make.running(on_lost=OnLost.NEW_JOB, subject_key="card:1")
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 1
    jobs = await rt.inspect.jobs()
    assert [(await rt.inspect.job(job.number)).subject_key for job in jobs] == ["card:1"] * 2
    assert (await rt.inspect.job(work.number)).status is Status.FAILED


@pytest.mark.parametrize("on_lost", OnLost)
async def test_losing_runs_spends_the_budget_to_the_dead_letter(
    make: Factory, rt: Runtime, clock: Clock, on_lost: OnLost
) -> None:
    """A job that kills its workers must come to an end."""
    if on_lost in (OnLost.FAIL, OnLost.NEW_JOB):
        number = await _lose(make, rt, on_lost=on_lost, max_attempts=0)
    else:
        number = await make.queued(on_lost=on_lost, max_attempts=2)
        for _ in range(3):
            await make.running(number)
            await rt.sweeps.rescue(Term(), [make.worker])
            await clock.forward(60)
            await rt.sweeps.promote(Term())
    job = await rt.inspect.job(number)
    assert (job.status, job.attempts) == (Status.DEAD_LETTER, job.max_attempts)


@pytest.mark.parametrize("origin", [Status.QUEUED, Status.RESUMED])
async def test_a_lost_claim_goes_back_and_spends_nothing(
    make: Factory, rt: Runtime, origin: Status
) -> None:
    number = await make.job_in(origin)
    runs = len(await rt.inspect.runs(number))
    await make.claimed(number)
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 1
    job = await rt.inspect.job(number)
    assert (job.status, job.attempts, job.last_error) == (origin, 0, None)
    assert len(await rt.inspect.runs(number)) == runs


async def test_a_lost_job_that_was_to_be_canceled_is_canceled(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.operate.cancel(work.number, make.owner, "enough")
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 1
    job = await rt.inspect.job(work.number)
    assert (job.status, job.attempts, job.cancel_reason) == (Status.CANCELED, 0, "enough")
    assert (await rt.inspect.runs(work.number))[0].status is RunStatus.CANCELED


async def test_a_silent_run_is_lost_after_its_lease(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    silent, beating = await make.running(on_lost="resume"), await make.running(on_lost="resume")
    claim = rt.claim(make.worker, ())
    await clock.forward(299)
    assert await rt.sweeps.rescue(Term()) == 0
    await claim.heartbeat([beating.lease], draining=False)
    await clock.forward(10)
    await claim.heartbeat([beating.lease], draining=False)
    assert await rt.sweeps.rescue(Term()) == 1
    assert (await rt.inspect.job(silent.number)).status is Status.RESUMED
    assert (await rt.inspect.job(beating.number)).status is Status.RUNNING


async def test_a_claim_is_lost_after_its_lease_unless_its_worker_beats(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    work = await make.claimed()
    claim = rt.claim(make.worker, ())
    for _ in range(3):
        await clock.forward(200)
        await claim.heartbeat([], draining=False)
        assert await rt.sweeps.rescue(Term()) == 0
    await clock.forward(301)
    assert await rt.sweeps.rescue(Term()) == 1
    assert (await rt.inspect.job(work.number)).status is Status.QUEUED


async def test_a_run_without_a_worker_row_lives_by_its_heartbeat(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    """A worker row that somebody removed must not hide a lost job, nor kill a live one."""
    work = await make.running(on_lost="resume")
    await clock.forward(200)
    await rt.claim(make.worker, ()).heartbeat([work.lease], draining=False)
    await clock.forward(200)
    assert await rt.sweeps.rescue(Term()) == 0
    await clock.forward(101)
    assert await rt.sweeps.rescue(Term()) == 1


@pytest.mark.parametrize(
    "status",
    sorted({*Status} - {Status.CLAIMED, Status.RUNNING}, key=str),
    ids=str,
)
async def test_what_nobody_holds_is_not_rescued(
    make: Factory, rt: Runtime, clock: Clock, status: Status
) -> None:
    number = await make.job_in(status)
    before = await rt.inspect.job(number)
    await clock.forward(100_000)
    assert await rt.sweeps.rescue(Term(), [make.worker]) == 0
    assert await rt.inspect.job(number) == before
