"""Shutdown of a worker: stop claiming, wait, abort, release the remaining runs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.errors import DatabaseUnreachable
from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import Runtime
from draftsman.worker.claim_loop import CLEANUP_TIMEOUT, ClaimLoop
from draftsman.worker.execution import Deadlines, Execution, WorkerServices
from draftsman.worker.leader import Leader
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until, wait_blocked
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import (
    BlockingHandler,
    CapturedLog,
    before_deadline,
    is_free,
    last_event,
    row_of,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.statements import value

S = Status


class UnstoppableHandler(BlockingHandler):
    """A handler that ignores its cancellation until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()

    async def __call__(self, ctx: RunContext) -> Outcome:
        self.entered.put_nowait(ctx)
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.told.set()
        return Done({"anyway": 1})


async def test_a_drain_claims_no_jobs_and_lets_runs_finish(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    first = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, drain=60), {"noop": blocking}) as process:
        await blocking.next()
        process.stop.set()
        await captured.wait("draining 1 runs")
        second = await make.queued(queue="default")
        await until(lambda: is_draining(rt, process), "the drain of the worker")
        blocking.go.set()
        assert (await wait_for_end(rt, first)).result == {"run": 1}
    assert (await rt.read_model.job(second)).status is S.QUEUED
    assert await row_of(rt, process.id) is None


async def is_draining(rt: Runtime, process: WorkerProcess) -> bool:
    row = await row_of(rt, process.id)
    return row is not None and row.draining


async def test_an_unfinished_run_is_released_without_using_an_attempt(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, drain=0.05), {"noop": blocking}) as process:
        ctx = await blocking.next()
        await ctx.checkpoint({"at": 7})
        process.stop.set()
        job = await wait_for_status(rt, number, S.RESUMED)
        assert (ctx.canceled, worker_run(ctx).stopping) == (True, "shutdown")
    assert (job.attempts, job.retry_count, job.last_error) == (0, 0, None)
    assert (await run_of(rt, number)).status == "interrupted"
    assert (await last_event(rt, number, "job_released")).payload == {"reason": "shutdown"}

    saved = []

    async def goes_on(ctx: RunContext) -> Outcome:
        saved.append(await ctx.saved())
        return Done({"run": ctx.job.run})

    async with running_worker(runtime_with(rt), {"noop": goes_on}):
        assert (await wait_for_end(rt, number)).result == {"run": 2}
    assert saved == [{"at": 7}]


async def test_an_aborted_handler_can_save_its_state(rt: Runtime, make: Factory) -> None:
    entered = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ctx.checkpoint({"saved": "at the last moment"})
            raise
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await before_deadline(entered.wait())
        process.stop.set()
        await wait_for_status(rt, number, S.RESUMED)
    assert (await rt.checkpoints.latest(number))[0] == {"saved": "at the last moment"}


@pytest.mark.parametrize("error", [DatabaseUnreachable, ValueError])
async def test_a_run_that_fails_because_of_the_shutdown_is_released(
    rt: Runtime, make: Factory, error: type[Exception]
) -> None:
    """A connection that breaks while a statement is being cancelled raises its own error."""
    entered = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise error("something else is gone") from None
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await before_deadline(entered.wait())
        process.stop.set()
        job = await wait_for_status(rt, number, S.RESUMED, S.RETRYING)
    assert (job.status, job.attempts, job.last_error) == (S.RESUMED, 0, None)
    assert (await run_of(rt, number)).status == "interrupted"
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert f"{error.__name__}: something else is gone" in log


async def test_prefetched_jobs_are_released(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    [_, second] = [await make.queued(queue="default") for _ in range(2)]
    async with running_worker(runtime_with(rt, prefetch=1), {"noop": blocking}, slots=1) as process:
        await blocking.next()
        await wait_for_status(rt, second, S.CLAIMED)
        process.stop.set()
        await wait_for_status(rt, second, S.QUEUED)
    assert await rt.read_model.runs(second) == []
    assert (await last_event(rt, second, "job_returned")).payload == {"reason": "shutdown"}


async def test_a_handler_that_ignores_its_abort_is_abandoned(rt: Runtime, make: Factory) -> None:
    stubborn = UnstoppableHandler()
    number = await make.queued(queue="default")
    try:
        async with running_worker(runtime_with(rt, abort=0.05), {"noop": stubborn}) as process:
            await stubborn.next()
            process.stop.set()
            await before_deadline(stubborn.told.wait())
            job = await wait_for_status(rt, number, S.RESUMED)
    finally:
        stubborn.go.set()
    assert job.attempts == 0
    await until(lambda: is_task_done(f"D-{number}.1"), "the handler's end")
    assert (await rt.read_model.job(number)).status is S.RESUMED


class EndingHandler(BlockingHandler):
    """A handler that takes time to end its processes."""

    whole = False

    async def __call__(self, ctx: RunContext) -> Outcome:
        self.entered.put_nowait(ctx)
        try:
            await asyncio.Event().wait()
        finally:
            worker_run(ctx).ending = True
            await self.go.wait()
            self.whole = True
        return Done({})


async def test_a_handler_that_ends_its_processes_is_awaited_and_not_canceled_again(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = ClaimLoop._finish
    waited = asyncio.Event()

    async def note(claim_loop: ClaimLoop, seconds: float) -> None:
        if seconds == CLEANUP_TIMEOUT:
            waited.set()
        await finish(claim_loop, seconds)

    monkeypatch.setattr(ClaimLoop, "_finish", note)
    slow = EndingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, abort=0.05), {"noop": slow}) as process:
        await slow.next()
        process.stop.set()
        await before_deadline(waited.wait())
        slow.go.set()
        await wait_for_status(rt, number, S.RESUMED)
    assert slow.whole
    assert not process.worker.running


async def is_task_done(task: str) -> bool:
    return task not in {other.get_name() for other in asyncio.all_tasks()}


async def test_a_handler_that_finishes_during_its_abort_completes_its_job(
    rt: Runtime, make: Factory
) -> None:
    stubborn = UnstoppableHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, abort=5), {"noop": stubborn}) as process:
        await stubborn.next()
        process.stop.set()
        await before_deadline(stubborn.told.wait())
        stubborn.go.set()
        assert (await wait_for_end(rt, number)).result == {"anyway": 1}


async def test_a_job_that_finishes_during_the_drain_is_settled_at_once(
    rt: Runtime, make: Factory
) -> None:
    short = BlockingHandler()
    long = BlockingHandler()
    first = await make.queued(type="short", queue="default")
    second = await make.queued(type="long", queue="default")
    async with running_worker(
        runtime_with(rt, drain=60), {"short": short, "long": long}
    ) as process:
        await short.next(), await long.next()
        process.stop.set()
        short.go.set()
        assert (await wait_for_end(rt, first)).status is S.COMPLETED
        assert (await rt.read_model.job(second)).status is S.RUNNING
        long.go.set()
    assert (await rt.read_model.job(second)).status is S.COMPLETED


async def test_a_result_is_not_lost_if_the_job_is_locked_at_shutdown(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, drain=60), {"noop": blocking}) as process:
        await blocking.next()
        async with conn.transaction():
            await conn.execute(
                "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (number,)
            )
            process.stop.set()
            blocking.go.set()
            await until(lambda: is_free(process), "the handler's end")
            await process.heartbeat.beat()
        assert (await wait_for_end(rt, number)).result == {"run": 1}


async def test_a_result_is_not_lost_if_the_database_is_unreachable_at_shutdown(
    rt: Runtime, make: Factory, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, drain=60), {"noop": blocking}) as process,
    ):
        await blocking.next()
        proxy.cut()
        process.stop.set()
        blocking.go.set()
        await captured.wait("worker: database unavailable, retrying")
        proxy.mend()
        assert (await wait_for_end(rt, number)).result == {"run": 1}


async def test_a_failed_loop_shuts_down_the_worker_and_its_runs(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    number = await make.queued(queue="default")
    process = runtime_with(rt).worker_process({"noop": blocking})
    async with background(process.run()) as running:
        worker_run(await blocking.next()).on_heartbeat(raise_value_error)
        with pytest.raises(ValueError, match="odd"):
            await before_deadline(running)
    assert captured.lines("Heartbeat failed: odd")
    assert (await rt.read_model.job(number)).status is S.RESUMED
    assert await row_of(rt, process.id) is None


def raise_value_error() -> None:
    raise ValueError("odd")


async def test_a_stop_does_not_wait_for_the_listener(rt: Runtime) -> None:
    async with running_worker(runtime_with(rt), {"noop": BlockingHandler()}) as process:
        await until(lambda: is_listening(rt, process), "the listener")
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 0.5


async def is_listening(rt: Runtime, process: WorkerProcess) -> bool:
    row = await row_of(rt, process.id)
    return row is not None and row.connected


@pytest.mark.parametrize(("why", "status"), [("shutdown", S.RESUMED), ("canceled", S.CANCELED)])
async def test_a_run_stopped_before_its_first_step_is_settled(
    rt: Runtime, make: Factory, why: str, status: Status
) -> None:
    work = await make.running()
    if why == "canceled":
        await rt.job_control.cancel(work.number, make.owner)
    quick = runtime_with(rt)
    worker_services = WorkerServices(
        settings=quick.settings,
        limits=JobLimits({}),
        claim=quick.claim(make.worker, ("default",)),
        checkpoints=rt.checkpoints,
        changes=rt.changes,
        activity=rt.activity,
        run_messages=rt.run_messages,
        attachments=rt.attachments,
        model_calls=rt.model_calls,
        asking=rt.asking,
        questions=rt.questions,
        settlement=rt.settlement,
        outbox=rt.outbox,
        repos=rt.repos,
        workflows=rt.workflows,
    )
    finished = asyncio.Event()
    execution = Execution(
        services=worker_services,
        job=work,
        handler=BlockingHandler(),
        deadlines=Deadlines(asyncio.get_running_loop()),
        continue_in_grace=None,
    )
    execution.start(lambda _: finished.set(), lambda _: None)
    execution.cancel(why)
    await before_deadline(finished.wait())
    assert (await rt.read_model.job(work.number)).status is status


async def test_a_finished_handler_is_not_run_again_because_of_a_late_log(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()

    async def handler(ctx: RunContext) -> Outcome:
        outcome = await blocking(ctx)
        ctx.log("the last line")
        return outcome

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await blocking.next()
        async with conn.transaction():
            await conn.execute(
                "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (number,)
            )
            blocking.go.set()
            async with rt.db.connection() as other:
                await wait_blocked(other, by=conn.info.backend_pid)
            process.stop.set()
            await until(lambda: is_draining(rt, process), "the drain of the worker")
        assert (await wait_for_end(rt, number)).result == {"run": 1}
    assert [chunk.text for chunk in await rt.checkpoints.logs(number)] == ["the last line\n"]


async def test_a_leader_resigns_while_every_connection_of_the_pool_is_in_use(
    rt: Runtime, conn: Connection
) -> None:
    leader = Leader(rt.sweeps, rt.settings.sweeps, uuid4())
    held = "SELECT count(*) FROM draftsman.leases WHERE expires_at > draftsman.now()"
    async with background(leader.run()) as running, AsyncExitStack() as others:
        await until(lambda: _returns(conn, held, 1), "the leader")
        for _ in range(rt.settings.database.pool_size):
            await others.enter_async_context(rt.db.connection())
        leader.stop.set()
        await before_deadline(asyncio.shield(running))
        assert await value(conn, held) == 0


async def _returns(conn: Connection, query: str, expected: int) -> bool:
    return bool(await value(conn, query) == expected)
