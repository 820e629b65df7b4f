"""A person cancels a job that runs, or another worker takes it over."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from draftsman.errors import LeaseLost, Refused
from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    BlockingHandler,
    CapturedLog,
    before_deadline,
    event_kinds,
    last_event,
    refuse_listening,
    rescue_live,
    row_of,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)

S = Status


async def test_a_notification_stops_the_handler_and_settles_the_job(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(
        runtime_with(rt, poll=60, heartbeat=20), {"noop": blocking}
    ) as process:
        ctx = await blocking.next()
        await until(lambda: listening(rt, process.id), "the listener")
        result = await rt.job_control.cancel(number, make.owner, "not needed any more")
        job = await wait_for_end(rt, number)
        assert (result.status, result.requested) == (S.RUNNING, True)
        assert (ctx.canceled, worker_run(ctx).stopping) == (True, "canceled")
    assert (job.status, job.cancel_reason) == (S.CANCELED, "not needed any more")
    assert (await run_of(rt, number)).status == "canceled"
    assert (await event_kinds(rt, number))[-2:] == ["cancel_requested", "job_canceled"]
    assert (await last_event(rt, number, "cancel_requested")).actor == make.owner.name


async def listening(rt: Runtime, worker: object) -> bool:
    return any(row.connected for row in await rt.read_model.workers() if row.id == worker)


async def test_a_heartbeat_reports_a_cancel_whose_notification_was_lost(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_listening(monkeypatch)
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        await blocking.next()
        await rt.job_control.cancel(number, make.owner)
        assert (await wait_for_end(rt, number)).status is S.CANCELED
        row = await row_of(rt, process.id)
        assert row is not None
        assert not row.connected


async def test_a_handler_that_ignores_the_cancel_is_settled_as_canceled(
    rt: Runtime, make: Factory
) -> None:
    entered = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        entered.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Done({"anyway": 1})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await before_deadline(entered.wait())
        await rt.job_control.cancel(number, make.owner)
        job = await wait_for_end(rt, number)
    assert (job.status, job.result) == (S.CANCELED, None)
    assert (await run_of(rt, number)).result == {"anyway": 1}


async def test_a_handler_that_fails_during_the_cancel_is_settled_as_canceled(
    rt: Runtime, make: Factory
) -> None:
    entered = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while tidying up")

    number = await make.queued(queue="default", max_attempts=1)
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await before_deadline(entered.wait())
        await rt.job_control.cancel(number, make.owner)
        job = await wait_for_end(rt, number)
    assert (job.status, job.attempts) == (S.CANCELED, 0)
    assert (await run_of(rt, number)).error == "ValueError: while tidying up"


async def test_the_next_write_of_a_canceled_run_reports_the_cancel(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    raised = []

    async def handler(ctx: RunContext) -> Outcome:
        with contextlib.suppress(asyncio.CancelledError):
            await blocking(ctx)
        try:
            await ctx.checkpoint({"late": 1})
        except LeaseLost as error:
            raised.append(error)
            raise
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await blocking.next()
        await rt.job_control.cancel(number, make.owner)
        assert (await wait_for_end(rt, number)).status is S.CANCELED
    assert len(raised) == 1
    assert (await rt.checkpoints.latest(number))[0] is None


async def test_a_cancel_after_the_completion_is_refused(rt: Runtime, make: Factory) -> None:
    number = await make.queued(queue="default")
    blocking = BlockingHandler()
    blocking.go.set()
    async with running_worker(runtime_with(rt), {"noop": blocking}):
        await wait_for_end(rt, number)
    with pytest.raises(Refused, match=f"D-{number} is already completed; nothing to cancel"):
        await rt.job_control.cancel(number, make.owner)


async def test_a_forced_cancel_ends_the_job_at_once_and_stops_the_run(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        ctx = await blocking.next()
        result = await rt.job_control.cancel(number, make.owner, force=True)
        assert (result.status, result.requested) == (S.CANCELED, False)
        before = await rt.read_model.job_events(number)
        await until(lambda: nothing_runs(process.worker.running), "the handler's end")
        assert ctx.canceled
    assert await rt.read_model.job_events(number) == before


async def nothing_runs(running: object) -> bool:
    return not running


async def test_only_the_canceled_run_stops(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    first, second = [await make.queued(queue="default") for _ in range(2)]
    async with running_worker(runtime_with(rt), {"noop": blocking}):
        await blocking.next(), await blocking.next()
        await rt.job_control.cancel(first, make.owner)
        assert (await wait_for_end(rt, first)).status is S.CANCELED
        assert (await rt.read_model.job(second)).status is S.RUNNING
        blocking.go.set()
        assert (await wait_for_end(rt, second)).result == {"run": 1}


async def test_a_cancel_comes_before_a_shutdown(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(
        runtime_with(rt, heartbeat=20, poll=60), {"noop": blocking}
    ) as process:
        await blocking.next()
        process.listener.stop.set()
        await rt.job_control.cancel(number, make.owner)
        process.stop.set()
        job = await wait_for_end(rt, number)
    assert job.status is S.CANCELED


async def test_a_run_whose_write_is_refused_after_a_lost_lease_ends_with_a_warning(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    released = asyncio.Event()

    async def write_late(ctx: RunContext) -> Outcome:
        await released.wait()
        await ctx.event("late")
        return Done()

    number = await make.queued(queue="default", on_lost="fail")
    slow = runtime_with(rt, heartbeat=30, lease=90)
    async with running_worker(slow, {"noop": write_late}) as process:
        await wait_for_status(rt, number, S.RUNNING)
        assert await rescue_live(rt, process.id) == 1
        released.set()
        await captured.wait(f"D-{number} lost its lease; the run was stopped without a result")
