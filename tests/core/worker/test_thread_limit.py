"""The limit of threads, apart from that of slots."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from draftsman import BlockingRunContext, RunContext, job
from draftsman.job_types import declaration
from draftsman.job_types.app import handlers_of
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman.worker.health_server import WorkerHealth
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker, runtime_with, wait_for_end


class Blocking:
    """A type whose thread goes on when the test lets it, whatever becomes of its run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(declaration, "declared_types", {})
        self.began: list[int] = []
        self.goes_on = threading.Event()

        @job("blocks")
        def blocks(ctx: BlockingRunContext) -> None:
            self.began.append(ctx.job.number)
            self.goes_on.wait()

        @job("other")
        async def other(ctx: RunContext) -> None: ...

    @asynccontextmanager
    async def worker(self, rt: Runtime, threads: int | None) -> AsyncIterator[WorkerProcess]:
        handlers = handlers_of(declaration.declared_types, {})
        services = runtime_with(rt, threads=threads)
        async with running_worker(services, handlers, slots=4) as process:
            try:
                yield process
            finally:
                self.goes_on.set()


def threads(process: WorkerProcess) -> dict[str, int]:
    health = WorkerHealth()
    health.process = process
    shown: dict[str, int] = health.as_json()["threads"]
    return shown


async def eventually(look: Callable[[], bool]) -> None:
    async def looks() -> bool:
        return look()

    await until(looks, "the threads")


async def test_threads_have_a_limit_of_their_own(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocking = Blocking(monkeypatch)
    numbers = [await make.queued(type="blocks", queue="default") for _ in range(3)]
    other = await make.queued(type="other", queue="default")
    async with blocking.worker(rt, threads=2) as process:
        await eventually(lambda: len(blocking.began) == 2)
        await eventually(lambda: threads(process)["waiting"] == 1)
        assert (await wait_for_end(rt, other)).status is Status.COMPLETED
        assert threads(process) == {"limit": 2, "running": 2, "waiting": 1}
        (waiting,) = {*numbers} - {*blocking.began}
        await rt.job_control.cancel(waiting, make.owner)
        assert (await wait_for_end(rt, waiting)).status is Status.CANCELED
        assert threads(process) == {"limit": 2, "running": 2, "waiting": 0}
        blocking.goes_on.set()
        for number in blocking.began:
            assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    assert waiting not in blocking.began


async def test_a_thread_that_ignores_its_cancellation_keeps_its_place(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocking = Blocking(monkeypatch)
    first = await make.queued(type="blocks", queue="default")
    async with blocking.worker(rt, threads=1) as process:
        await eventually(lambda: blocking.began == [first])
        await rt.job_control.cancel(first, make.owner)
        (execution,) = process.worker.running.values()
        await eventually(lambda: execution.ignores_stop)
        second = await make.queued(type="blocks", queue="default")
        await eventually(lambda: threads(process)["waiting"] == 1)
        assert blocking.began == [first]
        blocking.goes_on.set()
        assert (await wait_for_end(rt, second)).status is Status.COMPLETED


async def test_without_a_limit_each_slot_has_a_thread(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocking = Blocking(monkeypatch)
    for _ in range(4):
        await make.queued(type="blocks", queue="default")
    async with blocking.worker(rt, threads=None) as process:
        await eventually(lambda: len(blocking.began) == 4)
        assert threads(process) == {"limit": 4, "running": 4, "waiting": 0}
