"""Batches: a function gets the runs of several jobs, and each run has an end of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from draftsman import BatchRun, Cancel, ClaimedJob, Done, Failure, RunContext, Snooze, job
from draftsman.errors import ConfigError
from draftsman.handlers import batches
from draftsman.job_types import declaration, lifespan
from draftsman.job_types.app import handlers_of
from draftsman.job_types.declaration import JobType
from draftsman.jobs.job import Job, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman.testing.drained_app import DrainedApp
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)


class Word(BaseModel):
    text: str


Runs = Sequence[BatchRun[Word]]


@pytest.fixture(autouse=True)
def _own_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaration, "declared_types", {})


class Batches:
    """A type that remembers its batches; `values` are what it returns for each text."""

    def __init__(self, *, blocks: bool = False, size: int = 5, **values: Any) -> None:
        self.batches: list[list[str]] = []
        self.values = values
        self.began = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.runs: Runs = ()
        self.type: JobType[[Word], Any]
        if blocks:

            @job("index", batch=size)
            def blocking(runs: Sequence[BatchRun[Word]]) -> list[Any]:
                self.begin(runs)
                self.goes_on.wait()
                return self.results(runs)

            self.type = blocking
        else:

            @job("index", batch=size)
            async def coroutine(runs: Sequence[BatchRun[Word]]) -> list[Any]:
                self.begin(runs)
                await asyncio.to_thread(self.goes_on.wait)
                return self.results(runs)

            self.type = coroutine

    def begin(self, runs: Runs) -> None:
        self.runs = runs
        self.batches.append([run.payload.text for run in runs])
        self.began.set()

    def results(self, runs: Runs) -> list[Any]:
        if isinstance(error := self.values.get("all"), Exception):
            raise error
        for run in runs:
            run.log(f"got {run.payload.text}")
        return [self.values.get(run.payload.text, len(run.payload.text)) for run in runs]

    async def submit(self, rt: Runtime, owner: Actor, *texts: str) -> list[int]:
        requests = [invocation(type="index", payload={"text": text}) for text in texts]
        return [job.number for job in await rt.submissions.submit_many(requests, owner)]

    def worker(self, rt: Runtime, **options: Any) -> Any:
        handlers = handlers_of(declaration.declared_types, {})
        return running_worker(runtime_with(rt), handlers, **options)


@contextmanager
def going_on(batch: Batches) -> Iterator[None]:
    """Let the function go on at the end of the block, also when the test fails."""
    batch.goes_on.clear()
    try:
        yield
    finally:
        batch.goes_on.set()


async def _is(value: bool) -> bool:
    return value


async def _began(batch: Batches) -> None:
    assert await asyncio.to_thread(batch.began.wait, 60)


@pytest.mark.parametrize("blocks", [False, True])
async def test_a_batch_has_what_waits_and_each_run_its_own_end(
    rt: Runtime, owner: Actor, blocks: bool
) -> None:
    batch = Batches(
        blocks=blocks,
        fails=Failure("no such word", declared="PERMANENT"),
        busy=Failure("busy", declared="TRANSIENT_APP"),
        no=Cancel("not a word"),
        done=Done({"own": 1}),
    )
    texts = ("a", "fails", "busy", "no", "done", "abcdef")
    numbers = await batch.submit(rt, owner, *texts)
    (wrong,) = [
        submitted.number
        for submitted in await rt.submissions.submit_many(
            [invocation(type="index", payload={"txt": "a"}, priority=1)], owner
        )
    ]
    async with batch.worker(rt, slots=1):
        jobs = dict(zip(texts, [await _ended(rt, number) for number in numbers], strict=True))
        refused = await wait_for_end(rt, wrong)
    assert batch.batches == [["a", "fails", "busy", "no"], ["done", "abcdef"]]
    assert refused.last_error == "payload of index: text: is required"
    assert {text: str(job.status) for text, job in jobs.items()} == {
        "a": "completed", "fails": "failed", "busy": "retrying",
        "no": "canceled", "done": "completed", "abcdef": "completed",
    }  # fmt: skip
    assert [jobs[text].result for text in ("a", "done", "abcdef")] == [
        {"value": 1}, {"own": 1}, {"value": 6},
    ]  # fmt: skip
    assert (jobs["fails"].last_error, jobs["busy"].retry_count) == ("no such word", 1)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(numbers[0]))
    assert log == "got a\n"


async def _ended(rt: Runtime, number: int) -> Job:
    ended = (Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.RETRYING)
    return await wait_for_status(rt, number, *ended)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Failure("the index is down", declared="PERMANENT"), "the index is down"),
        (KeyError("x"), "KeyError: 'x'"),
    ],
)
async def test_an_error_of_the_function_is_that_of_each_run(
    rt: Runtime, owner: Actor, error: Exception, text: str
) -> None:
    batch = Batches(all=error)
    numbers = await batch.submit(rt, owner, "a", "b")
    async with batch.worker(rt):
        jobs = [await _ended(rt, number) for number in numbers]
    for ended in jobs:
        assert (ended.last_error or "").startswith(text)


async def test_a_list_without_an_entry_for_each_run_is_a_mistake(rt: Runtime, owner: Actor) -> None:
    @job("index", batch=5)
    async def index(runs: Sequence[BatchRun[Word]]) -> list[int]:
        return [1]

    requests = [invocation(type="index", payload={"text": text}) for text in "ab"]
    numbers = [job.number for job in await rt.submissions.submit_many(requests, owner)]
    async with running_worker(runtime_with(rt), handlers_of(declaration.declared_types, {})):
        jobs = [await wait_for_end(rt, number) for number in numbers]
    for ended in jobs:
        assert ended.status is Status.FAILED
        assert "returns a list with an entry for each of its 2 runs" in (ended.last_error or "")


@pytest.mark.parametrize("blocks", [False, True])
async def test_a_canceled_run_leaves_the_others(rt: Runtime, owner: Actor, blocks: bool) -> None:
    batch = Batches(blocks=blocks)
    numbers = await batch.submit(rt, owner, "a", "b")
    async with batch.worker(rt):
        with going_on(batch):
            await _began(batch)
            await rt.job_control.cancel(numbers[0], owner)
            canceled = await wait_for_end(rt, numbers[0])
            assert [run.canceled for run in batch.runs] == [True, False]
        other = await wait_for_end(rt, numbers[1])
    assert (canceled.status, other.result) == (Status.CANCELED, {"value": 1})


async def test_a_function_without_runs_keeps_its_slot_and_is_named(
    rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(batches, "OVERSTAY", 0)
    batch = Batches(blocks=True)
    (number,) = await batch.submit(rt, owner, "a")
    async with batch.worker(rt, slots=1) as process:
        with going_on(batch):
            await _began(batch)
            await rt.job_control.cancel(number, owner)
            await wait_for_end(rt, number)
            assert [loop.free for loop in process.worker._claim_loops] == [0]
            text = "goes on without its runs, in their slot: D-1"
            await until(lambda: _is(text in caplog.text), "a warning")
        (next_number,) = await batch.submit(rt, owner, "next")
        assert (await wait_for_end(rt, next_number)).result == {"value": 4}


async def test_a_shutdown_releases_each_run(rt: Runtime, owner: Actor) -> None:
    batch = Batches()
    numbers = await batch.submit(rt, owner, "a", "b")
    batch.goes_on.clear()
    async with batch.worker(rt):
        await _began(batch)
    batch.goes_on.set()
    jobs = [await rt.read_model.job(number) for number in numbers]
    assert [(job.status, job.attempts) for job in jobs] == [(Status.RESUMED, 0)] * 2
    async with batch.worker(rt):
        assert [(await wait_for_end(rt, number)).result for number in numbers] == [{"value": 1}] * 2


async def test_a_batch_uses_one_slot(rt: Runtime, owner: Actor) -> None:
    other_began = asyncio.Event()

    @job("other")
    async def other(ctx: RunContext) -> None:
        other_began.set()

    batch = Batches(size=3)
    numbers = await batch.submit(rt, owner, "a", "b", "c", "d", "e", "f")
    request = invocation(type="other")
    last = (await rt.submissions.submit(request, owner)).number
    async with batch.worker(rt, slots=2) as process:
        (loop,) = process.worker._claim_loops
        with going_on(batch):
            await until(lambda: _is(len(batch.batches) == 2), "two batches")
            assert not other_began.is_set()
            assert (len(loop.running), loop.free) == (6, 0)
            with pytest.MonkeyPatch.context() as patch:  # the functions have ended
                patch.setattr(loop, "_batches", set())
                assert loop.free == 2
        for number in [*numbers, last]:
            assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    assert sorted(map(sorted, batch.batches)) == [["a", "b", "c"], ["d", "e", "f"]]


async def test_a_batch_has_what_was_claimed_ahead(rt: Runtime, owner: Actor) -> None:
    batch = Batches()
    numbers = await batch.submit(rt, owner, *"abcdef")
    handlers = handlers_of(declaration.declared_types, {})
    async with running_worker(runtime_with(rt, prefetch=3), handlers, slots=1):
        for number in numbers:
            await wait_for_end(rt, number)
    assert batch.batches == [["a", "b", "c", "d", "e"], ["f"]]


async def test_middleware_surrounds_the_function_once_for_each_run(
    rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    @contextmanager
    def noted(job: ClaimedJob) -> Iterator[None]:
        seen.append(f"+{job.number}")
        yield
        seen.append(f"-{job.number}")

    monkeypatch.setattr(lifespan, "_middleware", [noted])
    batch = Batches(blocks=True)
    numbers = await batch.submit(rt, owner, "a", "b")
    async with batch.worker(rt):
        for number in numbers:
            await wait_for_end(rt, number)
    assert seen == ["+1", "+2", "-2", "-1"]


@pytest.mark.parametrize("app", ["draftsman_app", "draftsman_worker"])
def test_a_test_runs_batches(app: str, request: pytest.FixtureRequest) -> None:
    draftsman_app: DrainedApp = request.getfixturevalue(app)
    batch = Batches(size=2, b=Failure("not b", declared="PERMANENT"))
    for text in "abc":
        batch.type.submit(Word(text=text))
    draftsman_app.drain()
    assert batch.batches == [["a", "b"], ["c"]]
    assert [(str(job.status), job.result, job.last_error) for job in draftsman_app.jobs] == [
        ("completed", {"value": 1}, None),
        ("failed", None, "not b"),
        ("completed", {"value": 1}, None),
    ]


async def test_a_run_alone_is_a_batch_of_one() -> None:
    batch = Batches(a=Snooze(5))
    handler = batch.type.handler()
    result = await run_handler(handler, {"text": "abc"})
    assert (result.outcome, result.log, batch.batches) == (
        Done({"value": 3}), "got abc\n", [["abc"]],
    )  # fmt: skip


def test_a_result_has_the_type_of_an_entry() -> None:
    @job("index", batch=2)
    async def index(runs: Sequence[BatchRun[Word]]) -> list[int | Failure]:
        return [1 for _ in runs]

    assert index.parameters.results.load({"value": 1}) == 1
    with pytest.raises(ValueError, match="int"):
        index.parameters.results.load({"value": "x"})
    assert index.request(Word(text="a"))["payload"] == {"text": "a"}


async def no_batch(ctx: RunContext, text: str) -> None: ...


async def of_no_model(runs: Sequence[BatchRun]) -> list[int]:  # type: ignore[type-arg]
    return []


async def fits(runs: Sequence[BatchRun[Word]]) -> list[int]:
    return []


def blocks(runs: Sequence[BatchRun[Word]]) -> list[int]:
    return []


@pytest.mark.parametrize(
    ("declare", "function", "problem"),
    [
        (partial(job, batch=2), no_batch, "takes one parameter, a Sequence"),
        (partial(job, batch=2), of_no_model, "takes one parameter, a Sequence"),
        (partial(job, batch=0), fits, "batch 0 is no number from 1 to 1000"),
        (partial(job, batch=1001), fits, "batch 1001 is no number from 1 to 1000"),
        (partial(job, batch=2, isolation="process"), blocks, "does not run in a process"),
    ],
)
def test_what_cannot_work_is_an_error_at_the_declaration(
    declare: Callable[[str], Any], function: Any, problem: str
) -> None:
    with pytest.raises(ConfigError, match=f"^index: .*{problem}"):
        declare("index")(function)
