"""Questions and steps whose key comes again with another content; what is the same in each run."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

import pytest

from draftsman import Ask, BlockingRunContext, Done, Outcome, RunContext
from draftsman.errors import UsageError
from draftsman.handlers.blocking_context import run_in_thread
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman.testing import Clock, MemoryApp, run_handler
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)
from tests.support.cases import cases

THIRD: Final = "question 'go' came a third time with another content, without a step or checkpoint"
REMEDY: Final = "ctx.now() is the same in each run), or give each question a key of its own"


async def _changes(rt: Runtime, number: int) -> list[dict[str, Any]]:
    events = await rt.read_model.job_events(number)
    return [event.payload for event in events if event.kind == "content_changed"]


async def test_a_question_with_a_time_in_it_is_named_and_then_refused(
    rt: Runtime, make: Factory
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        await ctx.ask("go", f"It is run {ctx.job.run}. Go?", choices=["yes", "no"])
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        for place in (1, 2):
            await wait_for_question(rt, number, place)
            await make.answer(number, "yes", n=place)
        job = await wait_for_end(rt, number)
    texts = [f"It is run {run}. Go?" for run in (1, 2, 3)]
    warned = {"what": "question", "key": "go", "before": texts[0], "now": texts[1]}
    assert await _changes(rt, number) == [warned]
    assert (job.status, job.run_count, job.error_class) == (Status.FAILED, 3, "PERMANENT")
    assert (job.last_error or "").startswith(f"{THIRD} between: {texts[1]!r}, then {texts[2]!r}")
    assert REMEDY in (job.last_error or "")
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    warning = "warning: question 'go' came again with another content, and is asked again"
    assert f"{warning}: {texts[0]!r}, then {texts[1]!r}\n" in log


async def _with_a_step(ctx: RunContext) -> None:
    await ctx.step(f"step {ctx.job.run}", lambda _: 1)


async def _with_a_checkpoint(ctx: RunContext) -> None:
    await ctx.checkpoint({"run": ctx.job.run})


@cases("progress", [_with_a_step, _with_a_checkpoint])
async def test_a_question_that_changes_with_the_progress_of_its_job_comes_again(
    rt: Runtime, make: Factory, progress: Any
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        await progress(ctx)
        if ctx.job.run < 5:
            await ctx.ask("go", f"Page {ctx.job.run}. Go on?", choices=["yes", "no"])
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        for place in range(1, 5):
            await wait_for_question(rt, number, place)
            await make.answer(number, "yes", n=place)
        job = await wait_for_end(rt, number)
    assert (job.status, len(await _changes(rt, number))) == (Status.COMPLETED, 3)


async def test_an_approval_of_another_action_comes_again_without_a_warning(
    rt: Runtime, make: Factory, people: People
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        if ctx.job.run < 5:
            await ctx.approve("go", "Deploy?", action={"version": ctx.job.run})
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        for place in range(1, 5):
            await wait_for_question(rt, number, place)
            await make.decide(number, True, people.carol, n=place)
        job = await wait_for_end(rt, number)
    assert (job.status, await _changes(rt, number)) == (Status.COMPLETED, [])


async def asks_alternatives(ctx: RunContext) -> Outcome:
    await ctx.ask_all(
        Ask("go", f"It is run {ctx.job.run}. Go?", choices=["yes", "no"]), return_when="first"
    )
    return Done({})


async def asks_with_other_choices(ctx: RunContext) -> Outcome:
    await ctx.ask("go", "Go?", choices=["yes", f"in run {ctx.job.run}"])
    return Done({})


async def approves_another_text(ctx: RunContext) -> Outcome:
    await ctx.approve("go", f"It is run {ctx.job.run}. Go?", action={"version": 3})
    return Done({})


@cases("handler", [asks_alternatives, asks_with_other_choices, approves_another_text])
async def test_each_way_to_ask_is_refused_the_third_time(handler: Handler) -> None:
    answer = True if handler is approves_another_text else "yes"
    with pytest.raises(UsageError, match="'go' came a third time with another content"):
        await run_handler(handler, answers={"go": answer})


async def test_a_step_whose_key_comes_again_is_named_and_then_refused() -> None:
    def sends(ctx: BlockingRunContext, names: str) -> Outcome:
        for name in names:
            ctx.step("send", lambda _, name=name: name)  # type: ignore[misc]
        return Done({})

    def sends_parts(ctx: BlockingRunContext, names: str) -> Outcome:
        for name in names:
            ctx.step("send", partial(str.format, name))
        return Done({})

    def sends_captured(ctx: BlockingRunContext, names: str) -> Outcome:
        for name in names:
            ctx.step("send", lambda _: name)  # noqa: B023
        return Done({})

    for function in (sends, sends_parts, sends_captured):

        async def handler(ctx: RunContext, names: str, function: Any = function) -> Outcome:
            return await run_in_thread(ctx, partial(function, names=names))

        twice = await run_handler(partial(handler, names="ab"))
        ((kind, payload),) = twice.events
        assert (kind, payload["what"], payload["key"]) == ("content_changed", "step", "send")
        assert ("'a'" in payload["before"], "'b'" in payload["now"]) == (True, True)
        assert "warning: step 'send' came again with another content, and gets the recorded" in (
            twice.log
        )
        with pytest.raises(UsageError, match=r"step 'send' came a third time .* key of its own"):
            await run_handler(partial(handler, names="abc"))


async def test_a_step_that_is_used_again_or_with_progress_between_is_no_mistake() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        async def token(_: str) -> str:
            return "t"

        for _ in range(5):
            assert await ctx.step("token", token) == "t"
        for name in "abcd":
            await ctx.step(f"read {name}", lambda _, name=name: name)  # type: ignore[misc]
            await ctx.step("send", lambda _, name=name: name)  # type: ignore[misc]
        return Done({})

    result = await run_handler(handler)
    assert [kind for kind, _ in result.events] == ["content_changed"] * 3


class Seen:
    """What each run of a handler saw."""

    def __init__(self) -> None:
        self.runs: list[list[object]] = []

    async def handler(self, ctx: RunContext) -> Outcome:
        return await run_in_thread(ctx, self.run)

    def run(self, ctx: BlockingRunContext) -> Outcome:
        seen = [
            ctx.now(),
            ctx.now(),
            ctx.random.random(),
            ctx.uuid(),
            ctx.uuid(),
            ctx.random.random(),
        ]
        self.runs.append(seen)
        ctx.ask("go", "Go?", choices=["yes"])
        seen.append(ctx.now())
        ctx.sleep("nap", 0.01)
        return Done({})


async def test_time_and_chance_are_the_same_in_each_run(rt: Runtime, make: Factory) -> None:
    seen = Seen()
    other = Seen()
    numbers = [await make.queued(queue="default"), await make.queued(queue="default", type="other")]
    handlers = {"noop": seen.handler, "other": other.handler}
    async with running_worker(runtime_with(rt), handlers, leader=True):
        for number in numbers:
            await wait_for_question(rt, number)
            await make.answer(number, "yes")
            assert (await wait_for_end(rt, number)).status is Status.COMPLETED
    first, second, *after_the_nap = seen.runs  # which may be over before it parks the job
    assert first == second[:6]
    assert after_the_nap in ([], [second])
    assert len(set(first)) == 6
    assert not {*first} & {*other.runs[0]}


async def test_the_time_of_a_call_is_that_of_its_first_run() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        before = await ctx.now()
        await ctx.sleep("night", 3600)
        return Done({"seconds": (await ctx.now() - before).total_seconds()})

    assert (await run_handler(handler, clock=Clock())).outcome == Done({"seconds": 3600.0})


async def test_the_context_of_tasks_counts_its_times() -> None:
    async def handler(ctx: RunContext) -> Outcome:
        one, two = await asyncio.gather(ctx.now(), ctx.now())
        assert one <= two
        return Done({})

    assert (await run_handler(handler)).outcome == Done({})


SPAWNED: Final = "spawn 'child' came again with another content, and gets the job of the first"


async def test_a_spawn_with_a_time_in_it_is_named_and_then_refused(
    rt: Runtime, make: Factory
) -> None:
    numbers: list[int] = []

    async def handler(ctx: RunContext) -> Outcome:
        numbers.append(await ctx.spawn("child", "other", payload={"run": ctx.job.run}))
        assert await ctx.spawn("child", "other", payload={"run": ctx.job.run}) == numbers[0]
        await ctx.ask(f"go-{ctx.job.run}", "Go?", choices=["yes"])
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        for place in (1, 2):
            await wait_for_question(rt, number, place)
            await make.answer(number, "yes", n=place)
        job = await wait_for_end(rt, number)
    texts = [f'other {{"run": {run}}}' for run in (1, 2, 3)]
    (change,) = await _changes(rt, number)
    assert change | {"digest": ""} == {
        "what": "spawn", "key": "child", "before": texts[0], "now": texts[1], "digest": "",
    }  # fmt: skip
    assert len(await rt.read_model.jobs(type="other")) == len({*numbers}) == 1
    assert (job.status, job.run_count, job.error_class) == (Status.FAILED, 3, "PERMANENT")
    refusal = "spawn 'child' came a third time with another content, without a step or checkpoint"
    assert (job.last_error or "").startswith(f"{refusal} between: {texts[1]!r}, then {texts[2]!r}")
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert f"warning: {SPAWNED} request: {texts[0]!r}, then {texts[1]!r}\n" in log


@cases("progress", [_with_a_step, _with_a_checkpoint])
async def test_a_spawn_that_changes_with_the_progress_of_its_job_is_only_named(
    rt: Runtime, make: Factory, progress: Any
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        await progress(ctx)
        await ctx.spawn("child", "other", title=f"Run {ctx.job.run}")
        if ctx.job.run < 4:
            await ctx.ask(f"go-{ctx.job.run}", "Go?", choices=["yes"])
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        for place in (1, 2, 3):
            await wait_for_question(rt, number, place)
            await make.answer(number, "yes", n=place)
        job = await wait_for_end(rt, number)
    assert (job.status, len(await _changes(rt, number))) == (Status.COMPLETED, 3)


async def test_a_key_in_a_loop_of_spawns_is_refused_the_third_time() -> None:
    async def spawns(ctx: RunContext, names: str) -> Outcome:
        return Done({"jobs": [await ctx.spawn("x", "other", text=name) for name in names]})

    jobs = MemoryApp()
    twice = await run_handler(partial(spawns, names="aba"), jobs=jobs)
    assert (twice.outcome, [kind for kind, _ in twice.events]) == (
        Done({"jobs": [1, 1, 1]}), ["content_changed"],
    )  # fmt: skip
    with pytest.raises(UsageError, match="spawn 'x' came a third time with another content"):
        await run_handler(partial(spawns, names="abc"), jobs=jobs)
