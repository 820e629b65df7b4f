"""Declared job types: submitted with their parameters, run in the event loop and in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from draftsman import (
    Answered,
    BlockingRunContext,
    Client,
    Draftsman,
    Failure,
    RunContext,
    Snooze,
    job,
)
from draftsman.errors import ConfigError, UsageError
from draftsman.handlers.blocking_context import RunInterrupted
from draftsman.job_types import declaration
from draftsman.job_types.app import handlers_of, with_limits
from draftsman.jobs.job import Status
from draftsman.processes.host import login
from draftsman.runtime import Runtime, wire
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)


class Report(BaseModel):
    week: int
    region: str


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})


@pytest.fixture
def draftsman(tmp_path: Path, database_url: str) -> Draftsman:
    config = tmp_path / "draftsman.toml"
    roles = '["invoker", "responder", "operator"]'
    config.write_text(f'[people.me]\nlogin = "{login()}"\nroles = {roles}\n')
    return Draftsman(database_url, config=config)


@pytest.fixture
async def client(draftsman: Draftsman) -> AsyncIterator[Client]:
    async with draftsman as client:
        yield client


@asynccontextmanager
async def declared_worker(rt: Runtime, **worker: Any) -> AsyncIterator[WorkerProcess]:
    """Run a worker with the types that the test declared."""
    types = declaration.declared_types
    services = runtime_with(rt, **worker)
    services = wire(with_limits(services.settings, types), rt.db, False)
    async with running_worker(services, handlers_of(types, {}), leader=True) as process:
        yield process


async def is_stopping(process: WorkerProcess) -> bool:
    """Return whether a run of the worker was stopped and goes on."""
    return any(run.ignores_stop for run in process.worker.running.values())


async def test_a_job_is_submitted_by_a_call_and_has_a_typed_result(
    rt: Runtime, client: Client
) -> None:
    @job(
        "report:weekly",
        title="Report of week {week} in {region}",
        concurrency="report-{region}",
        max_retries=1,
        timeout=60,
    )
    async def weekly(ctx: RunContext, week: int, region: Literal["eu", "us"] = "eu") -> Report:
        return Report(week=week, region=region)

    submitted = await weekly.with_options(client=client, key="2026-31").submit_async(week=31)
    again = await weekly.with_options(client=client, key="2026-31").submit_async(31)
    assert (submitted.number, again.outcome) == (again.number, "deduplicated")
    queued = await rt.read_model.job(submitted.number)
    assert (queued.title, queued.payload) == ("Report of week 31 in eu", {"week": 31})
    assert queued.concurrency_key == "report-eu"
    async with declared_worker(rt):
        assert await submitted.result_async(30) == Report(week=31, region="eu")


async def test_a_function_of_a_thread_asks_steps_and_sleeps(rt: Runtime, client: Client) -> None:
    effects: list[tuple[str, str]] = []

    @job("deploy")
    def deploy(ctx: BlockingRunContext, to: str) -> dict[str, Any]:
        def effect(invocation: str) -> str:
            effects.append((invocation, threading.current_thread().name))
            return "built"

        built = ctx.step("build", effect)
        print("built", built)  # noqa: T201 - output of a handler
        ctx.sleep("pause", 0.01)
        answer = ctx.ask("color", "Which?", choices=["red", "blue"])
        assert isinstance(answer, Answered)
        ctx.checkpoint({"color": answer.value})
        ctx.log("done")
        return {"to": to, "color": answer.value, "run": ctx.job.run, "saved": ctx.saved()}

    submitted = await deploy.with_options(client=client).submit_async(to="eu")
    async with declared_worker(rt):
        await wait_for_question(rt, submitted.number)
        await client.answer(f"{submitted.name}/1", "blue")
        result = await submitted.result_async(30)
    assert (result["to"], result["color"], result["saved"]) == ("eu", "blue", {"color": "blue"})
    assert result["run"] > 1
    assert len(effects) == 1
    assert effects[0][1] == f"{submitted.name} run 1"
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(submitted.number))
    assert "built built\n" in log
    assert "done\n" in log


async def test_threads_have_the_context_of_their_run_and_are_beside_the_event_loop(
    rt: Runtime, client: Client
) -> None:
    both = threading.Barrier(2, timeout=30)
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    @job("meet")
    def meet(ctx: BlockingRunContext, name: str) -> str:
        variable.set(name)
        both.wait()
        assert ctx.step("name", lambda _: variable.get()) == name
        return variable.get()

    jobs = [
        await meet.with_options(client=client).submit_async(name=name) for name in ("anna", "ben")
    ]
    async with declared_worker(rt):
        assert [await each.result_async(30) for each in jobs] == ["anna", "ben"]
    assert variable.get() == "unset"


async def test_a_canceled_thread_is_interrupted_at_its_next_call(
    rt: Runtime, client: Client
) -> None:
    started = threading.Event()
    release = threading.Event()
    ended: list[str] = []

    @job("slow")
    def slow(ctx: BlockingRunContext) -> None:
        started.set()
        release.wait(30)
        try:
            ctx.step("late", lambda _: None)
        except RunInterrupted:
            ended.append(f"canceled: {ctx.canceled}")
            raise

    submitted = await slow.with_options(client=client).submit_async()
    async with declared_worker(rt) as process:
        await asyncio.to_thread(started.wait, 30)
        await client.cancel(submitted.number, "no longer needed")
        await until(partial(is_stopping, process), "the cancellation of the run")
        release.set()
        canceled = await wait_for_status(rt, submitted.number, Status.CANCELED)
    assert canceled.status is Status.CANCELED
    assert ended == ["canceled: True"]


async def test_a_step_that_overstays_the_time_limit_is_not_recorded(
    rt: Runtime, client: Client
) -> None:
    in_effect = threading.Event()
    go_on = threading.Event()
    raised: list[type[BaseException]] = []

    @job("step", timeout=0.2, max_attempts=1, max_retries=0)
    def stepping(ctx: BlockingRunContext) -> None:
        def effect(_: str) -> None:
            in_effect.set()
            while not ctx.canceled:
                go_on.wait(0.01)

        try:
            ctx.step("one", effect)
        except BaseException as error:
            raised.append(type(error))
            raise

    submitted = await stepping.with_options(client=client).submit_async()
    async with declared_worker(rt):
        await asyncio.to_thread(in_effect.wait, 30)
        ended = await wait_for_end(rt, submitted.number)
    assert (ended.status, ended.last_error) == (
        Status.FAILED,
        "ran for 0.2 s (job limit, time spent waiting excluded)",
    )
    assert raised == [RunInterrupted]
    (step,) = await rt.checkpoints.steps(submitted.number)
    assert step.status == "pending"


async def test_a_slot_is_kept_until_its_thread_has_ended(rt: Runtime, client: Client) -> None:
    started = threading.Event()
    release = threading.Event()

    @job("stuck", max_attempts=1, max_retries=0)
    def stuck(ctx: BlockingRunContext) -> None:
        started.set()
        release.wait(30)

    submitted = await stuck.with_options(client=client).submit_async()
    async with declared_worker(rt) as process:
        await asyncio.to_thread(started.wait, 30)
        await client.cancel(submitted.number, "no longer needed")
        await until(partial(is_stopping, process), "the cancellation of the run")
        assert len(process.worker.running) == 1
        release.set()
        await wait_for_end(rt, submitted.number)


async def test_errors_of_a_thread_are_those_of_its_run(rt: Runtime, client: Client) -> None:
    @job("fails", max_retries=0, max_attempts=1)
    def fails(ctx: BlockingRunContext) -> None:
        raise Failure("the bank said no", declared="PERMANENT")

    submitted = await fails.with_options(client=client).submit_async()
    async with declared_worker(rt):
        with pytest.raises(Failure, match=r"D-\d+ is failed: the bank said no"):
            await submitted.result_async(30)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(submitted.number))
    assert log.endswith("draftsman.errors.Failure: the bank said no\n"), "with its traceback"


async def test_a_payload_of_another_schema_fails_with_its_parameter(
    rt: Runtime, client: Client
) -> None:
    @job("typed")
    async def typed(ctx: RunContext, week: int) -> None: ...

    submitted = await client.submit(type="typed", payload={"week": "x"}, unchecked=True)
    async with declared_worker(rt):
        ended = await wait_for_end(rt, submitted.number)
    assert ended.status is Status.FAILED
    assert ended.last_error == "payload of typed: week 'x': must be a whole number"


async def test_jobs_of_a_former_name_run_and_outcomes_count(rt: Runtime, client: Client) -> None:
    @job("new:name", aliases=["old:name"])
    def renamed(ctx: BlockingRunContext) -> int | Snooze:
        return Snooze(0.01) if ctx.job.run == 1 else ctx.job.run

    submitted = await client.submit(type="old:name", unchecked=True)
    async with declared_worker(rt):
        ended = await wait_for_end(rt, submitted.number)
    assert (ended.status, ended.result) == (Status.COMPLETED, {"value": 2})


async def test_limits_of_the_configuration_override_those_of_the_code(rt: Runtime) -> None:
    @job("limited", timeout=600, max_retries=7)
    async def limited(ctx: RunContext) -> None: ...

    settings = runtime_with(rt, types={"limited": {"timeout": 5}}).settings
    merged = with_limits(settings, declaration.declared_types).types["limited"]
    assert (merged.timeout, merged.max_retries) == (5, 7)


def test_a_submission_blocks_with_the_client_of_the_process(
    draftsman: Draftsman,
) -> None:
    @job("plain")
    def plain(ctx: BlockingRunContext, n: int = 1) -> int:
        return n

    with draftsman as client:
        with_client = plain.with_options(client=client)
        jobs = with_client.submit_many([{"n": n} for n in range(3)])
        assert [client.get(each.number).payload for each in jobs] == [{"n": 0}, {"n": 1}, {"n": 2}]
        with pytest.raises(TimeoutError):
            jobs[0].result(timeout=0.01)
        with pytest.raises(UsageError, match="unexpected keyword argument 'm'"):
            with_client.submit_many([{"m": 1}])


def test_a_declaration_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="'1x' is no name of a job type"):
        job("1x")(_nothing)
    with pytest.raises(ConfigError, match=r"a: title: unknown field \{weak\}; fields: week"):
        job("a", title="{weak}")(_nothing)
    with pytest.raises(ConfigError, match="a: max_retries: must be at most 100"):
        job("a", max_retries=1000)(_nothing)
    with pytest.raises(ConfigError, match="a: an async function takes a RunContext as its first"):
        job("a")(_of_a_thread)
    job("b")(_nothing)
    with pytest.raises(ConfigError, match=r"b is declared twice, by \S+:_nothing and \S+:_other"):
        job("b")(_other)


def test_names_of_others_are_refused() -> None:
    job("run_agent")(_nothing)
    with pytest.raises(ConfigError, match="a built-in type; rename it"):
        handlers_of(declaration.declared_types, {})
    declaration.declared_types.clear()
    job("c")(_nothing)
    with pytest.raises(ConfigError, match=r"declared by \S+:_nothing and set in \[handlers\]"):
        handlers_of(declaration.declared_types, {"c": "a:b"})


async def _nothing(ctx: RunContext, week: int) -> None: ...


async def _other(ctx: RunContext, week: int) -> None: ...


async def _of_a_thread(ctx: BlockingRunContext) -> None: ...
