"""Outcomes: the next status after each end of a run, and the budget it spends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman.deliveries.service.message_builder import build_result
from draftsman.errors import Failure
from draftsman.ids import worker_name
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.runs.outcome import Cancel, Done, Snooze
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm, RunStatus
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.clock import Clock

BUSY = Failure("busy", http_status=503)
GONE = Failure("the network is gone", http_status=502)
ODD = Failure("RuntimeError: odd")
WRONG = Failure("no such branch", origin="git", code="no_such_ref")


async def test_a_completed_run_completes_its_job(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    assert await rt.settlement.outcome(work, Done({"n": 1})) is Status.COMPLETED
    job = await rt.read_model.job(work.number)
    (run,) = await rt.read_model.runs(work.number)
    assert (job.result, job.last_error, job.worker_id) == ({"n": 1}, None, None)
    assert (run.status, run.finished_at) == (RunStatus.COMPLETED, job.finished_at)


@pytest.mark.parametrize("as_time", [False, True], ids=["seconds", "time"])
async def test_a_snoozed_job_is_resumed_without_using_an_attempt(
    make: Factory, rt: Runtime, clock: Clock, as_time: bool
) -> None:
    work = await make.running()
    until = datetime.now(UTC) + timedelta(seconds=60) if as_time else 60.0
    assert await rt.settlement.outcome(work, Snooze(until)) is Status.SCHEDULED
    job = await rt.read_model.job(work.number)
    assert (job.attempts, job.retry_count, job.run_count) == (0, 0, 1)
    assert job.run_at is not None
    assert 30 < (job.run_at - job.updated_at).total_seconds() <= 60
    assert (await rt.read_model.runs(work.number))[0].status is RunStatus.PARKED
    assert await rt.promotion.promote(LeaderTerm()) == 0
    await clock.forward(61)
    assert await rt.promotion.promote(LeaderTerm()) == 1
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


@pytest.mark.parametrize("until", [0.0, -5.0])
async def test_a_snooze_until_now_is_due_at_once(make: Factory, rt: Runtime, until: float) -> None:
    await rt.settlement.outcome(await make.running(), Snooze(until))
    assert await rt.promotion.promote(LeaderTerm()) == 1


@pytest.mark.parametrize("until", [1e30, float("inf"), float("nan")])
async def test_an_endless_snooze_is_limited_to_a_year(
    make: Factory, rt: Runtime, until: float
) -> None:
    work = await make.running()
    assert await rt.settlement.outcome(work, Snooze(until)) is Status.SCHEDULED
    job = await rt.read_model.job(work.number)
    assert job.run_at is not None
    assert 365 <= (job.run_at - job.updated_at).days <= 366


async def test_a_job_canceled_by_its_handler_is_canceled_by_its_worker(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    assert await rt.settlement.outcome(work, Cancel("the card was archived")) is Status.CANCELED
    job = await rt.read_model.job(work.number)
    assert (job.cancel_reason, job.cancel_requested_by) == (
        "the card was archived",
        f"worker:{make.worker}",
    )
    assert build_result(job).subject.canceled_by == f"worker {worker_name(make.worker)}"


async def test_a_released_run_uses_no_attempt(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    assert await rt.settlement.release_run(work, "shutdown") is Status.RESUMED
    job = await rt.read_model.job(work.number)
    assert (job.attempts, job.retry_count, job.run_count, job.last_error) == (0, 0, 1, None)
    assert (await rt.read_model.runs(work.number))[0].status is RunStatus.INTERRUPTED
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.payload) == ("job_released", {"reason": "shutdown"})


async def _fail(make: Factory, failure: Failure, number: int) -> tuple[Status | None, ClaimedJob]:
    work = await make.running(number)
    return await make.rt.settlement.failure(work, failure), work


@pytest.mark.parametrize(
    ("failure", "limits", "runs"),
    [
        (BUSY, {"max_retries": 0}, 1),
        (BUSY, {"max_retries": 2, "max_attempts": 1}, 3),
        (GONE, {"max_attempts": 1}, 1),
        (GONE, {"max_attempts": 3, "max_retries": 0}, 3),
        (ODD, {"max_attempts": 3}, 3),
        (ODD, {"max_attempts": 9, "max_retries": 2}, 3),
        (ODD, {"max_attempts": 1}, 1),
        (ODD, {"max_attempts": 9, "max_retries": 0}, 1),
    ],
    ids=str,
)
async def test_a_job_runs_as_often_as_its_attempts_and_retries_say(
    make: Factory,
    rt: Runtime,
    clock: Clock,
    failure: Failure,
    limits: dict[str, Any],
    runs: int,
) -> None:
    number = await make.queued(**limits)
    for _ in range(runs - 1):
        assert (await _fail(make, failure, number))[0] is Status.RETRYING
        assert await rt.promotion.promote(LeaderTerm()) == 0
        await clock.forward(400)
        assert await rt.promotion.promote(LeaderTerm()) == 1
        assert (await rt.read_model.job(number)).status is Status.QUEUED
    assert (await _fail(make, failure, number))[0] is Status.DEAD_LETTER
    job = await rt.read_model.job(number)
    assert job.attempts == (0 if failure is BUSY else runs)
    assert job.retry_count == (0 if failure is GONE else runs - 1)
    assert (job.run_count, job.last_error) == (runs, str(failure))
    assert (await rt.read_model.job_events(number))[-1].kind == "job_dead_lettered"


async def test_the_two_budgets_are_independent(make: Factory, rt: Runtime, clock: Clock) -> None:
    number = await make.queued(max_attempts=2, max_retries=1)
    for failure in (BUSY, GONE):
        assert (await _fail(make, failure, number))[0] is Status.RETRYING
        await clock.forward(400)
        await rt.promotion.promote(LeaderTerm())
    job = await rt.read_model.job(number)
    assert (job.attempts, job.retry_count) == (1, 1)


async def test_a_failure_without_a_budget_is_a_dead_letter_at_once(make: Factory) -> None:
    number = await make.queued(max_retries=0)
    assert (await _fail(make, BUSY, number))[0] is Status.DEAD_LETTER


async def test_a_permanent_failure_fails_the_job_with_its_error_in_the_run(
    make: Factory, rt: Runtime
) -> None:
    status, work = await _fail(make, WRONG, await make.queued())
    job = await rt.read_model.job(work.number)
    (run,) = await rt.read_model.runs(work.number)
    assert status is job.status is Status.FAILED
    assert (job.last_error, job.error_class, job.attempts) == ("no such branch", "PERMANENT", 0)
    assert (run.status, run.error, run.error_class) == (
        RunStatus.FAILED,
        "no such branch",
        "PERMANENT",
    )


@pytest.mark.parametrize("retry_after", [100.0, 1e30, float("inf"), float("nan"), -5.0])
async def test_retry_after_is_limited_to_a_day(
    make: Factory, rt: Runtime, retry_after: float
) -> None:
    work = await make.running()
    failure = Failure("slow down", http_status=429, retry_after=retry_after)
    assert await rt.settlement.failure(work, failure) is Status.RETRYING
    job = await rt.read_model.job(work.number)
    assert job.next_retry_at is not None
    wait = (job.next_retry_at - job.updated_at).total_seconds()
    assert 0 <= wait <= 86_400
    if retry_after == 100.0:
        assert wait == pytest.approx(100)


async def test_infrastructure_backoff_is_exponential(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.queued(max_attempts=4)
    waits = []
    for _ in range(3):
        await _fail(make, GONE, number)
        job = await rt.read_model.job(number)
        assert job.next_retry_at is not None
        waits.append((job.next_retry_at - job.updated_at).total_seconds())
        await clock.forward(60)
        await rt.promotion.promote(LeaderTerm())
    assert waits == pytest.approx([2.718, 7.389, 20.086], abs=0.01)


async def test_retry_count_stays_after_a_later_success(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.retrying()
    await clock.forward(400)
    await rt.promotion.promote(LeaderTerm())
    work = await make.running(number)
    await rt.settlement.outcome(work, Done())
    job = await rt.read_model.job(number)
    assert (job.status, job.retry_count, job.next_retry_at) == (Status.COMPLETED, 1, None)
    runs = await rt.read_model.runs(number)
    assert [(run.status, run.error) for run in runs] == [
        (RunStatus.FAILED, "busy"),
        (RunStatus.COMPLETED, None),
    ]


@pytest.mark.parametrize("end", ["done", "snooze", "failure", "busy", "hand_back", "canceled"])
async def test_every_end_of_a_canceled_job_is_canceled_without_using_an_attempt(
    make: Factory, rt: Runtime, end: str
) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, make.owner, "enough")
    match end:
        case "done":
            status = await rt.settlement.outcome(work, Done({"n": 1}))
        case "snooze":
            status = await rt.settlement.outcome(work, Snooze(60))
        case "failure":
            status = await rt.settlement.failure(work, GONE)
        case "busy":
            status = await rt.settlement.failure(work, BUSY)
        case "hand_back":
            status = await rt.settlement.release_run(work, "shutdown")
        case _:
            status = await rt.settlement.canceled(work)
    job = await rt.read_model.job(work.number)
    (run,) = await rt.read_model.runs(work.number)
    assert status is job.status is Status.CANCELED
    assert run.status is RunStatus.CANCELED
    assert (job.attempts, job.retry_count, job.result) == (0, 0, None)
    assert (job.cancel_reason, job.cancel_requested_by) == ("enough", "cli:root")
    if end == "done":
        assert run.result == {"n": 1}


async def test_a_job_that_was_only_claimed_has_no_end(make: Factory, rt: Runtime) -> None:
    work = await make.claimed()
    assert await rt.settlement.outcome(work, Done({"n": 1})) is None
    assert (await rt.read_model.job(work.number)).status is Status.CLAIMED


async def test_a_cancel_request_keeps_its_time_and_a_completed_run_has_no_result_of_its_own(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    completed = await make.running()
    await rt.job_control.cancel(work.number, make.owner, "enough")
    requested = (await rt.read_model.job(work.number)).cancel_requested_at
    assert requested is not None
    await rt.settlement.outcome(work, Cancel("the card was archived"))
    job = await rt.read_model.job(work.number)
    assert (job.cancel_requested_at, job.cancel_reason) == (requested, "enough")
    await rt.settlement.outcome(completed, Done({"n": 1}))
    job = await rt.read_model.job(completed.number)
    (run,) = await rt.read_model.runs(completed.number)
    assert (run.result, job.cancel_requested_at, job.cancel_reason) == (None, None, None)


@pytest.mark.parametrize(("before", "at_end"), [(None, 3), (3, None), (4, 3)])
async def test_the_exit_code_of_a_run_is_that_of_its_end_or_the_recorded_one(
    make: Factory, rt: Runtime, before: int | None, at_end: int | None
) -> None:
    work = await make.running()
    await rt.checkpoints.describe(work.lease, {"model": "small"}, before)
    await rt.checkpoints.describe(work.lease, {"level": 2})
    await rt.settlement.failure(work, Failure("no", declared="PERMANENT", program_exit=at_end))
    (run,) = await rt.read_model.runs(work.number)
    assert (run.exit_code, run.params_snapshot) == (3, {"model": "small", "level": 2})


async def test_a_job_keeps_its_start_time_and_its_last_error_after_a_success(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    number = await make.scheduled()
    run_at = (await rt.read_model.job(number)).run_at
    assert run_at is not None
    await clock.forward(3601)
    await rt.promotion.promote(LeaderTerm())
    work = await make.running(number)
    await rt.settlement.failure(work, BUSY)
    await clock.forward(400)
    await rt.promotion.promote(LeaderTerm())
    await rt.settlement.outcome(await make.running(number), Done())
    job = await rt.read_model.job(number)
    assert (job.run_at, job.last_error, job.error_class) == (run_at, "busy", "TRANSIENT_APP")


async def test_a_run_without_a_cancel_does_not_end_as_canceled(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    assert await rt.settlement.canceled(work) is None
    assert (await rt.read_model.job(work.number)).status is Status.RUNNING


async def test_the_limits_of_the_job_count_not_those_of_its_type(
    make: Factory, rt: Runtime
) -> None:
    number = await make.queued(type="run_agent", max_attempts=1, on_lost=OnLost.FAIL)
    assert (await _fail(make, GONE, number))[0] is Status.DEAD_LETTER
