"""Resources of a worker, and middleware around the runs of declared types."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from draftsman import (
    BlockingRunContext,
    ClaimedJob,
    Failure,
    RunContext,
    job,
    lifespan,
    middleware,
)
from draftsman.errors import ConfigError, UsageError
from draftsman.job_types import declaration
from draftsman.job_types import lifespan as lifespans
from draftsman.job_types.app import handlers_of
from draftsman.job_types.lifespan import opened_lifespans
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)

SPAN: ContextVar[str] = ContextVar("SPAN", default="none")


@pytest.fixture(autouse=True)
def _own_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})
    for name in ("_lifespans", "_middleware", "_async_middleware"):
        monkeypatch.setattr(lifespans, name, [])


async def test_resources_are_open_around_the_runs_and_typed(rt: Runtime, make: Factory) -> None:
    seen: list[str] = []

    @lifespan
    async def numbers() -> AsyncIterator[list[int]]:
        seen.append("open numbers")
        yield [31]
        seen.append("close numbers")

    @lifespan
    async def texts() -> AsyncIterator[str]:
        seen.append(f"open texts beside {numbers()}")
        try:
            yield "text"
        finally:
            seen.append("close texts")

    @job("thread")
    def thread(ctx: BlockingRunContext) -> int:
        return numbers()[0]

    @job("task")
    async def task(ctx: RunContext) -> str:
        return texts().upper()

    handlers = handlers_of(declaration.declared_types, {})
    async with opened_lifespans(), running_worker(runtime_with(rt), handlers):
        for type, value in {"thread": 31, "task": "TEXT"}.items():
            number = await make.queued(type=type, queue="default")
            assert (await wait_for_end(rt, number)).result == {"value": value}
    opened = ["open numbers", "open texts beside [31]"]
    assert seen == [*opened, "close texts", "close numbers"]
    with pytest.raises(UsageError, match=r"test_lifespan:.*numbers is open in the process of a"):
        numbers()
    with numbers.replaced([7]):
        assert numbers() == [7]


async def test_a_resource_that_cannot_open_is_named_and_closes_the_others() -> None:
    closed: list[str] = []

    @lifespan
    async def first() -> AsyncIterator[None]:
        try:
            yield
        finally:
            closed.append("first")

    @lifespan
    async def pool() -> AsyncIterator[None]:
        raise OSError("no such host")
        yield

    with pytest.raises(ConfigError, match=r"the lifespan .*pool cannot start: no such host"):
        async with opened_lifespans():
            raise AssertionError("not reached")
    assert closed == ["first"]


def _traced(seen: list[Any]) -> None:
    @middleware
    def outer(job: ClaimedJob) -> Iterator[None]:
        SPAN.set(job.type)
        seen.append(("outer", job.name, threading.get_ident()))
        try:
            yield
        except Exception as error:
            seen.append(("error", str(error)))
            raise
        finally:
            seen.append(("end", threading.get_ident()))

    @middleware
    def inner(job: ClaimedJob) -> Iterator[None]:
        seen.append(("inner",))
        yield

    @middleware
    async def around(job: ClaimedJob) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        seen.append(("around", threading.get_ident()))
        yield


async def test_middleware_surrounds_a_run_in_its_thread_or_task(rt: Runtime, make: Factory) -> None:
    seen: list[Any] = []
    _traced(seen)

    @job("thread")
    def thread(ctx: BlockingRunContext) -> str:
        seen.append(("run", threading.get_ident()))
        ctx.ask("go", "Go?", choices=["yes"])
        return SPAN.get()

    @job("task")
    async def task(ctx: RunContext) -> str:
        seen.append(("run", threading.get_ident()))
        await ctx.ask("go", "Go?", choices=["yes"])
        return SPAN.get()

    handlers = handlers_of(declaration.declared_types, {})
    async with running_worker(runtime_with(rt), handlers):
        for type in ("thread", "task"):
            seen.clear()
            number = await make.queued(type=type, queue="default")
            await wait_for_question(rt, number)
            await make.answer(number, "yes")
            ended = await wait_for_end(rt, number)
            assert ended.result == {"value": type}
            kinds = [entry[0] for entry in seen]
            assert kinds == ["around", "outer", "inner", "run", "end"] * 2, "a pause is no error"
            for run in (seen[:5], seen[5:]):
                (own,) = {entry[-1] for entry in run if entry[0] in ("outer", "run", "end")}
                assert (threading.get_ident() == own) == (type == "task")


async def test_an_error_passes_through_middleware_and_fails_the_run_even_if_it_is_dropped(
    rt: Runtime, make: Factory
) -> None:
    seen: list[Any] = []
    _traced(seen)

    @middleware
    def drops(job: ClaimedJob) -> Iterator[None]:
        try:
            yield
        except Failure:
            seen.append(("dropped",))

    @middleware
    async def drops_too(job: ClaimedJob) -> AsyncIterator[None]:
        try:
            yield
        except Failure:
            seen.append(("dropped",))

    @job("thread")
    def thread(ctx: BlockingRunContext) -> None:
        raise Failure("the bank said no", declared="PERMANENT")

    @job("task")
    async def task(ctx: RunContext) -> None:
        raise Failure("the bank said no", declared="PERMANENT")

    handlers = handlers_of(declaration.declared_types, {})
    async with running_worker(runtime_with(rt), handlers):
        for type in ("thread", "task"):
            seen.clear()
            number = await make.queued(type=type, queue="default")
            ended = await wait_for_end(rt, number)
            assert (ended.status, ended.last_error) == (Status.FAILED, "the bank said no")
            assert seen.count(("dropped",)) == 2


async def test_middleware_may_fail_a_run_before_it_starts() -> None:
    @middleware
    def refuses(job: ClaimedJob) -> Iterator[None]:
        raise Failure("not today", declared="PERMANENT")
        yield

    @job("task")
    async def task(ctx: RunContext) -> None:
        raise AssertionError("not reached")

    with pytest.raises(Failure, match="not today"):
        await run_handler(task.handler())
