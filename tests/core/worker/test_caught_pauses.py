"""Handlers that catch the pause of their run: nothing that they return or raise counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Parked, Snooze
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    CapturedLog,
    is_free,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)

S = Status


async def _ask(ctx: RunContext) -> str | None:
    return (await ctx.ask("go", "Go on?", choices=["yes", "no"])).value


async def returns_in_finally(ctx: RunContext) -> Outcome:
    answer = None
    try:
        answer = await _ask(ctx)
    finally:
        return Done({"answer": answer})  # noqa: B012


async def catches_everything(ctx: RunContext) -> Outcome:
    try:
        return Done({"answer": await _ask(ctx)})
    except BaseException:
        return Done({"answer": None})


async def cancels(ctx: RunContext) -> Outcome:
    try:
        return Done({"answer": await _ask(ctx)})
    except BaseException:
        return Cancel("no answer")


async def snoozes(ctx: RunContext) -> Outcome:
    try:
        return Done({"answer": await _ask(ctx)})
    except BaseException:
        return Snooze(0)


async def raises(ctx: RunContext) -> Outcome:
    try:
        return Done({"answer": await _ask(ctx)})
    except BaseException:
        raise KeyError("no answer") from None


async def writes(ctx: RunContext) -> Outcome:
    try:
        return Done({"answer": await _ask(ctx)})
    except BaseException:
        await ctx.checkpoint({"answer": None})
        raise


async def returns_nothing(ctx: RunContext) -> Any:
    try:
        return Done({"answer": await _ask(ctx)})
    except BaseException:
        return None


ENDINGS = {
    "returned Done": (returns_in_finally, catches_everything),
    "returned Cancel": (cancels,),
    "returned Snooze": (snoozes,),
    "returned NoneType": (returns_nothing,),
    "raised KeyError": (raises,),
    "raised LeaseLost": (writes,),
}


@pytest.mark.parametrize("ended", ENDINGS)
async def test_a_handler_that_catches_its_pause_changes_nothing(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture, ended: str
) -> None:
    log = CapturedLog(caplog)
    for handler in ENDINGS[ended]:
        number = await make.queued(queue="default")
        async with running_worker(runtime_with(rt), {"noop": handler}) as process:
            await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
            await until(lambda: is_free(process), "the end of the run")
            job = await rt.read_model.job(number)
            assert (job.status, job.attempts, job.last_error) == (S.WAITING_FOR_INPUT, 0, None)
            await make.answer(number, "yes")
            job = await wait_for_end(rt, number)
        assert (job.status, job.result) == (S.COMPLETED, {"answer": "yes"})
        assert [run.status for run in await rt.read_model.runs(number)] == ["parked", "completed"]
        said = f"tests.core.worker.test_caught_pauses:{handler.__qualname__} {ended} after its run"
        assert len(log.lines(said)) == 1
        stored = "".join([chunk.text for chunk in await rt.checkpoints.logs(number)])
        assert said in stored
        assert "do not return in finally" in stored
        assert ("Traceback (most recent call last)" in stored) == ended.startswith("raised")
        assert "NoneType: None" not in stored


async def test_a_pause_for_a_time_or_for_jobs_that_is_caught_counts(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    async def sleeps(ctx: RunContext) -> Outcome:
        try:
            await ctx.sleep("nap", 3600)
        finally:
            return Done({})  # noqa: B012

    async def gathers(ctx: RunContext) -> Outcome:
        try:
            await ctx.gather([await ctx.spawn("child", "unhandled", queue="elsewhere")])
        finally:
            return Done({})  # noqa: B012

    log = CapturedLog(caplog)
    handlers = {"sleeps": sleeps, "gathers": gathers}
    numbers = [await make.queued(queue="default", type=type) for type in handlers]
    async with running_worker(runtime_with(rt), handlers) as process:
        await until(lambda: _have_run(rt, numbers), "both runs")
        await until(lambda: is_free(process), "the end of the runs")
    assert [(await rt.read_model.job(number)).status for number in numbers] == [S.SCHEDULED] * 2
    assert len(log.lines("returned Done after its run had paused")) == 2


async def _have_run(rt: Runtime, numbers: list[int]) -> bool:
    runs = [await rt.read_model.runs(number) for number in numbers]
    return all(found and found[0].status != "running" for found in runs)


async def test_a_result_after_the_pause_is_not_that_of_the_run_after_the_answer(
    rt: Runtime, make: Factory
) -> None:
    """The same worker has both runs at once when the first returns."""
    release = asyncio.Event()
    entered = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        if ctx.job.run == 2:
            entered.set()
            await release.wait()
        try:
            answer = await _ask(ctx)
        except BaseException:
            await entered.wait()
            return Done({"answer": None})
        return Done({"answer": answer})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        await until(lambda: _has_ended_once(process.worker.leases), "the end of the first run")
        release.set()
        job = await wait_for_end(rt, number)
    assert job.result == {"answer": "yes"}
    assert (await run_of(rt, number, 2)).status == "completed"


async def _has_ended_once(leases: Callable[[], Sequence[object]]) -> bool:
    return len(leases()) == 1


async def test_a_handler_that_raises_parked_itself_fails(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        raise Parked

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert job.last_error == "the handler raised Parked, but its run is not waiting for anything"
