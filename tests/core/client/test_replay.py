"""Replays of recorded jobs with today's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from draftsman import Answered, BlockingRunContext, Done, Draftsman, Outcome, RunContext
from draftsman.errors import Failure, UsageError
from draftsman.handlers.blocking_context import run_in_thread
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Status
from draftsman.processes.host import login
from draftsman.runtime import Runtime
from draftsman.testing import replay
from draftsman.testing.replays import replay_job
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.support.cases import cases


@pytest.fixture
def draftsman(tmp_path: Path, database_url: str) -> Draftsman:
    config = tmp_path / "draftsman.toml"
    config.write_text(f'[people.me]\nlogin = "{login()}"\nroles = ["operator"]\n')
    return Draftsman(database_url, config=config)


EFFECTS: Final[list[str]] = []


def report(ctx: BlockingRunContext) -> Outcome:
    def read(_: str) -> int:
        EFFECTS.append("read")
        return 3

    rows = ctx.step("read", read)
    began = ctx.now()
    child = ctx.spawn("child", "noop", payload={"rows": rows})
    (done,) = ctx.gather([child])
    answer = ctx.ask("send", f"{rows} rows at {began:%H:%M}. Send?", choices=["yes", "no"])
    ctx.sleep("nap", 0.01)
    ctx.notify("sent", ["log"])
    value = answer.value if isinstance(answer, Answered) else None
    return Done({"sent": value, "child": done.result})


def with_another_text(ctx: BlockingRunContext) -> Outcome:
    ctx.step("read", lambda _: 3)
    ctx.gather([ctx.spawn("child", "noop", payload={"rows": 4})])
    answer = ctx.ask("send", "Send it?", choices=["yes", "no", "later"])
    return Done({"sent": answer.value, "child": {}})


def with_another_step(ctx: BlockingRunContext) -> Outcome:
    ctx.step("read", lambda _: 3)
    return Done({"sent": ctx.step("send", lambda _: EFFECTS.append("send"))})


def with_another_question(ctx: BlockingRunContext) -> Outcome:
    ctx.step("read", lambda _: 3)
    ctx.ask("sure", "Really?", choices=["yes"])
    return Done({})


def with_other_choices(ctx: BlockingRunContext) -> Outcome:
    ctx.step("read", lambda _: 3)
    ctx.ask("send", "Send it?", choices=["later"])
    return Done({})


def with_a_mistake(ctx: BlockingRunContext) -> Outcome:
    raise ValueError("no rows")


ANOTHER_TEXT: Final = (
    "asks the question 'send' with another content: '3 rows at TIME. Send?', now 'Send it?'"
)
UNFIT: Final = "D-1/1: 'yes' is not a choice; choose: 1 later"
CASES: Final[list[tuple[Any, str, list[str]]]] = [
    (report, "completes", []),
    (
        with_another_text,
        "completes",
        ["spawns 'child' by another request than D-2", ANOTHER_TEXT],
    ),
    (with_another_step, "runs the step 'send'", ["runs the step 'send', which no run did"]),
    (
        with_another_question,
        "waits for the answer to 'sure'",
        ["asks the question 'sure', which no run did: 'Really?'"],
    ),
    (
        with_other_choices,
        f"asks 'send' again: the recorded answer does not fit: {UNFIT}",
        [ANOTHER_TEXT],
    ),
    (
        with_a_mistake,
        "fails: ValueError: no rows",
        ["fails: ValueError: no rows; the job returned {'sent': 'yes', 'child': {}}"],
    ),
]


def in_thread(function: Any) -> Handler:
    async def handler(ctx: RunContext) -> Outcome:
        return await run_in_thread(ctx, function)

    return handler


async def _noop(ctx: RunContext) -> Outcome:
    return Done({})


async def test_a_replay_names_each_difference_and_has_no_effect(rt: Runtime, make: Factory) -> None:
    EFFECTS.clear()
    number = await make.queued(type="report", queue="default")
    handlers = {"report": in_thread(report), "noop": _noop}
    async with running_worker(runtime_with(rt), handlers, leader=True):
        await wait_for_question(rt, number)
        (question,) = await rt.questions.open(number)
        waiting = await replay_job(rt, in_thread(report), number)
        assert (waiting.ending, waiting.differences) == ("waits for the answer to 'send'", ())
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert (job.status, EFFECTS) == (Status.COMPLETED, ["read"])
    events = len(await rt.read_model.job_events(number))
    for function, ending, differences in CASES:
        replayed = await replay_job(rt, in_thread(function), number)
        found = [
            text.replace(question.text, "3 rows at TIME. Send?") for text in replayed.differences
        ]
        assert (replayed.ending, found) == (ending, differences), function
    assert EFFECTS == ["read"]
    assert len(await rt.read_model.job_events(number)) == events
    assert await rt.questions.open(number) == []


async def test_what_is_left_out_is_named(rt: Runtime, make: Factory) -> None:
    async def before(ctx: RunContext) -> Outcome:
        await ctx.step("one", lambda _: 1)
        await ctx.step("two", lambda _: 2)
        return Done({"value": 1})

    async def after(ctx: RunContext) -> Outcome:
        return Done({"value": await ctx.step("one", lambda _: 9)})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": before}):
        await wait_for_end(rt, number)
    replayed = await replay_job(rt, after, number)
    assert (replayed.ending, replayed.differences) == ("completes", ("leaves out the step 'two'",))


@cases("fixed", [False, True])
async def test_a_failed_job_is_replayed_with_the_checkpoint_of_its_last_run(
    rt: Runtime, make: Factory, fixed: bool
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        page = (await ctx.saved() or {"page": 1})["page"]
        if ctx.job.run == 1:
            await ctx.checkpoint({"page": 2})
            await ctx.ask("go", "Go?", choices=["yes"])
        await ctx.checkpoint({"page": 3})
        if not fixed or not is_replay:
            raise Failure("page broken", declared="PERMANENT")
        return Done({"page": page})

    is_replay = False
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, Status.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        await wait_for_end(rt, number)
    is_replay = True
    replayed = await replay_job(rt, handler, number)
    returns = "returns {'page': 2}; the job is failed: page broken"
    assert replayed.differences == ((returns,) if fixed else ())


async def test_the_last_jobs_of_a_type_are_replayed(
    rt: Runtime, make: Factory, draftsman: Draftsman
) -> None:
    async def before(ctx: RunContext) -> Outcome:
        return Done({"run": ctx.job.run, "name": ctx.job.name})

    numbers = [await make.queued(queue="default") for _ in range(3)]
    async with running_worker(runtime_with(rt), {"noop": before}):
        for number in numbers:
            await wait_for_end(rt, number)
    async with draftsman as client:
        replays = await replay(client, before, "noop", last=2)
        assert [(each.job, each.differences) for each in replays] == [("D-3", ()), ("D-2", ())]
        with pytest.raises(UsageError, match="needs the name of its type"):
            await replay(client, before)
        (first, *_) = await replay(client, _noop, "noop")
    assert first.differences == ("returns {}; the job returned {'run': 1, 'name': 'D-3'}",)


async def test_a_job_that_does_not_exist_is_named(rt: Runtime) -> None:
    with pytest.raises(Exception, match="D-9"):
        await replay_job(rt, _noop, 9)
