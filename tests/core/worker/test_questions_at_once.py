"""Handlers whose tasks ask at once: all questions are open together, and each answer counts."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from draftsman import Approve, Ask, BlockingRunContext
from draftsman.errors import LeaseLost, UsageError
from draftsman.handlers.blocking_context import run_in_thread
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome, Snooze
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    CapturedLog,
    before_deadline,
    is_free,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.cases import cases

S = Status


async def ask(ctx: RunContext, key: str) -> str | None:
    return (await ctx.ask(key, f"{key}?", choices=["yes", "no"])).value


def question(key: str) -> Ask:
    return Ask(key, f"{key}?", choices=["yes", "no"])


async def gathers(ctx: RunContext) -> Outcome:
    one, two = await asyncio.gather(ask(ctx, "one"), ask(ctx, "two"))
    return Done({"answers": [one, two]})


async def gathers_exceptions(ctx: RunContext) -> Outcome:
    answers = await asyncio.gather(ask(ctx, "one"), ask(ctx, "two"), return_exceptions=True)
    return Done({"answers": [str(answer) for answer in answers]})


async def uses_a_group(ctx: RunContext) -> Outcome:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(ctx, key)) for key in ("one", "two")]
    return Done({"answers": [task.result() for task in tasks]})


async def waits(ctx: RunContext) -> Outcome:
    tasks = [asyncio.create_task(ask(ctx, key)) for key in ("one", "two")]
    done, _ = await asyncio.wait(tasks)
    assert len(done) == 2
    return Done({"answers": [task.result() for task in tasks]})


async def waits_for_answers(ctx: RunContext) -> Outcome:
    one, two = await ctx.ask_all(question("one"), question("two"))
    return Done({"answers": [one.value, two.value]})


def waits_in_a_thread(ctx: BlockingRunContext) -> Outcome:
    return Done({"answers": [each.value for each in ctx.ask_all(*map(question, ("one", "two")))]})


async def waits_in_threads(ctx: RunContext) -> Outcome:
    return await run_in_thread(ctx, waits_in_a_thread)


async def ignores_errors(ctx: RunContext) -> Outcome:
    async def careful(key: str) -> str | None:
        try:
            return await ask(ctx, key)
        except Exception:
            return "an error"

    return Done({"answers": list(await asyncio.gather(careful("one"), careful("two")))})


async def nests(ctx: RunContext) -> Outcome:
    async def later(key: str) -> str | None:
        for _ in range(3):
            await asyncio.create_task(asyncio.sleep(0))
        return await asyncio.create_task(ask(ctx, key))

    one, (two,) = await asyncio.gather(ask(ctx, "one"), asyncio.gather(later("two")))
    return Done({"answers": [one, two]})


async def asks_in_steps(ctx: RunContext) -> Outcome:
    async def step(key: str) -> str | None:
        return await ctx.step(f"step {key}", lambda _: ask(ctx, key))

    return Done({"answers": list(await asyncio.gather(step("one"), step("two")))})


@cases(
    "handler",
    [
        gathers,
        gathers_exceptions,
        uses_a_group,
        waits,
        waits_for_answers,
        waits_in_threads,
        ignores_errors,
        nests,
        asks_in_steps,
    ],
)
async def test_all_questions_are_open_and_the_last_answer_resumes_the_job(
    rt: Runtime, make: Factory, handler: Handler
) -> None:
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        opened = await rt.questions.open(number)
        ordinals = {question.key: question.ordinal for question in opened}
        assert sorted(ordinals) == ["one", "two"]
        await make.answer(number, "no", n=ordinals["two"])
        await until(lambda: is_free(process), "the end of the run")
        assert (await rt.read_model.job(number)).status is S.WAITING_FOR_INPUT
        await make.answer(number, "yes", n=ordinals["one"])
        job = await wait_for_end(rt, number)
    assert (job.status, job.result) == (S.COMPLETED, {"answers": ["yes", "no"]})
    assert [run.status for run in await rt.read_model.runs(number)] == ["parked", "completed"]


async def test_an_approval_and_a_question_are_asked_at_once(
    rt: Runtime, make: Factory, people: People
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        gate = ctx.approve("gate", "Deploy?", approvers=["carol"])
        answer, decision = await asyncio.gather(ask(ctx, "one"), gate)
        return Done({"answer": answer, "approved": decision.approved})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_APPROVAL)
        await make.decide(number, True, people.carol, n=2)
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.result == {"answer": "yes", "approved": True}


async def test_a_question_waits_for_the_steps_beside_it_and_for_nothing_else(
    rt: Runtime, make: Factory
) -> None:
    """A step is recorded; a plain await is canceled at the pause, and runs again."""
    finish = asyncio.Event()
    effects: list[str] = []
    sleeps = 0

    async def effect(_: str) -> str:
        await finish.wait()
        effects.append("done")
        return "done"

    async def plain() -> str:
        nonlocal sleeps
        sleeps += 1
        if sleeps == 1:
            await asyncio.Event().wait()
        return "slept"

    async def handler(ctx: RunContext) -> Outcome:
        values = await asyncio.gather(ask(ctx, "one"), ctx.step("slow", effect), plain())
        return Done({"values": list(values)})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await until(lambda: _has_step(rt, number), "the step")
        assert (await rt.read_model.job(number)).status is S.RUNNING
        finish.set()
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.result == {"values": ["yes", "done", "slept"]}
    assert (effects, sleeps) == (["done"], 2)


async def _has_step(rt: Runtime, number: int) -> bool:
    return bool(await rt.checkpoints.steps(number))


async def test_branches_that_need_several_answers_go_on_together(
    rt: Runtime, make: Factory
) -> None:
    async def branch(ctx: RunContext, name: str) -> list[str | None]:
        return [await ask(ctx, f"{name}{n}") for n in (1, 2)]

    async def handler(ctx: RunContext) -> Outcome:
        return Done({"all": list(await asyncio.gather(branch(ctx, "a"), branch(ctx, "b")))})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        for first in (1, 3):
            await until(partial(_are_open, rt, number, first), "both questions")
            for n in (first, first + 1):
                await make.answer(number, "yes", n=n)
        job = await wait_for_end(rt, number)
    assert job.result == {"all": [["yes", "yes"], ["yes", "yes"]]}
    assert len(await rt.read_model.runs(number)) == 3


async def _are_open(rt: Runtime, number: int, first: int) -> bool:
    opened = await rt.questions.open(number)
    return [item.ordinal for item in opened] == [first, first + 1]


async def test_the_handler_goes_on_with_the_first_of_alternatives(
    rt: Runtime, make: Factory, people: People
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        gate = Approve("gate", "Deploy?", approvers=["carol"])
        first, decision = await ctx.ask_all(question("one"), gate, return_when="first")
        one = await ask(ctx, "one") if first is None else first.value
        assert await ctx.ask_all(return_when="first") == ()
        return Done({"first": first and first.value, "decided": decision is not None, "one": one})

    for decided in (False, True):
        number = await make.queued(queue="default")
        async with running_worker(runtime_with(rt), {"noop": handler}):
            await wait_for_status(rt, number, S.WAITING_FOR_APPROVAL)
            if decided:
                await make.decide(number, True, people.carol, n=2)
                await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
                await make.answer(number, "no", n=3)
            else:
                await make.answer(number, "yes")
            job = await wait_for_end(rt, number)
        assert job.result is not None
        expected = ("no", True, "no") if decided else ("yes", False, "yes")
        assert tuple(job.result[key] for key in ("first", "decided", "one")) == expected


async def test_alternatives_beside_a_question_resume_the_job_together(
    rt: Runtime, make: Factory
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        first = ctx.ask_all(question("b"), question("c"), return_when="first")
        answer, others = await asyncio.gather(ask(ctx, "a"), first)
        return Done({"a": answer, "others": [each and each.value for each in others]})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        keys = {item.key: item.ordinal for item in await rt.questions.open(number)}
        assert (await make.answer(number, "no", n=keys["c"])).job_status == S.WAITING_FOR_INPUT
        assert [item.key for item in await rt.questions.open(number)] == ["a"]
        await make.answer(number, "yes", n=keys["a"])
        job = await wait_for_end(rt, number)
    assert job.result == {"a": "yes", "others": [None, "no"]}


async def test_a_sleep_beside_a_question_ends_after_the_answer(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        answer, _ = await asyncio.gather(ask(ctx, "one"), ctx.sleep("nap", 0.2))
        await asyncio.gather(ctx.sleep("long", 0.2), ctx.sleep("short", 0.1))
        return Done({"answer": answer})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}, leader=True):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.result == {"answer": "yes"}


async def test_the_same_question_of_two_tasks_is_asked_once(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        return Done({"answers": list(await asyncio.gather(ask(ctx, "one"), ask(ctx, "one")))})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        assert len(await rt.questions.open(number)) == 1
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.result == {"answers": ["yes", "yes"]}


async def test_questions_that_cannot_be_asked_at_once_fail_the_job(
    rt: Runtime, make: Factory
) -> None:
    async def same_key(ctx: RunContext) -> Outcome:
        other = ctx.ask("one", "Another text?", choices=["yes"])
        await asyncio.gather(ask(ctx, "one"), other)
        return Done({})

    async def too_many(ctx: RunContext) -> Outcome:
        await asyncio.gather(*(ask(ctx, str(n)) for n in range(101)))
        return Done({})

    async def unawaited(ctx: RunContext) -> Outcome:
        asking = asyncio.create_task(ask(ctx, "one"))

        async def is_asking() -> bool:
            return bool(worker_run(ctx).pause._waits)

        async def until_it_asks(_: str) -> bool:
            await until(is_asking, "the question")
            return asking.done()

        assert not await ctx.step("wait", until_it_asks)
        return Done({})

    async def misspelled(ctx: RunContext) -> Outcome:
        await ctx.ask_all(question("one"), return_when="any")  # type: ignore[call-overload]
        return Done({})

    errors = {
        same_key: "question 'one' is asked twice at once",
        too_many: "a run asks at most 100 questions at once, not 101",
        unawaited: "the handler returned while it was about to ask 'one'",
        misspelled: "return_when is 'all' or 'first', not 'any'",
    }
    for handler, error in errors.items():
        number = await make.queued(queue="default")
        async with running_worker(runtime_with(rt), {"noop": handler}):
            job = await wait_for_end(rt, number)
        assert (job.status, job.error_class) == (S.FAILED, "PERMANENT"), handler
        assert error in (job.last_error or "")
        assert (await rt.questions.of_job(number))[0] == []


async def test_a_task_that_gives_up_asks_nothing(rt: Runtime, make: Factory) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        asking = asyncio.create_task(ask(ctx, "one"))
        await ctx.step("wait", lambda _: 1)
        asking.cancel()
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        job = await wait_for_end(rt, number)
    assert (job.status, (await rt.questions.of_job(number))[0]) == (S.COMPLETED, [])


async def test_an_error_of_another_task_counts_before_the_questions(
    rt: Runtime, make: Factory
) -> None:
    async def fails(_: str) -> None:
        raise UsageError("the other task is wrong")

    async def handler(ctx: RunContext) -> Outcome:
        await asyncio.gather(ask(ctx, "one"), ctx.step("wrong", fails))
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        job = await wait_for_end(rt, number)
    assert (job.status, job.last_error) == (S.FAILED, "the other task is wrong")
    assert (await rt.questions.of_job(number))[0] == []


@pytest.mark.parametrize("fails", [True, False])
async def test_a_task_that_outlives_its_handler_asks_nothing(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """It begins to ask while the end of the run is stored."""
    rt = runtime_with(rt)
    ending = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    settle = rt.settlement._settle

    async def settle_late(*args: Any, **options: Any) -> Any:
        ending.set()
        await asyncio.wait(tasks, timeout=5)
        return await settle(*args, **options)

    async def handler(ctx: RunContext) -> Outcome:
        async def late() -> None:
            await ending.wait()
            await ask(ctx, "one")

        tasks.append(asyncio.create_task(late()))
        await ctx.step("first", lambda _: 1)
        if fails:
            raise UsageError("it is wrong")
        return Snooze(3600)

    monkeypatch.setattr(rt.settlement, "_settle", settle_late)
    number = await make.queued(queue="default")
    async with running_worker(rt, {"noop": handler}):

        async def settled() -> bool:
            return (await rt.read_model.job(number)).status in (S.FAILED, S.SCHEDULED, S.RETRYING)

        await until(settled, "the end of the run")
    assert tasks[0].cancelled()
    assert (await rt.questions.of_job(number))[0] == []


async def test_cleanup_after_the_pause_neither_hangs_nor_asks(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    log = CapturedLog(caplog)
    errors: list[type[BaseException]] = []

    async def handler(ctx: RunContext) -> Outcome:
        try:
            return Done({"answer": await ask(ctx, "one")})
        finally:
            if ctx.job.run == 1:
                for call in (ctx.checkpoint({}), ask(ctx, "two"), ctx.sleep("nap", 60)):
                    try:
                        await call
                    except BaseException as error:
                        errors.append(type(error))

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await until(lambda: is_free(process), "the end of the run")
        await make.answer(number, "yes")
        job = await before_deadline(wait_for_end(rt, number))
    assert job.result == {"answer": "yes"}
    assert errors[0] is LeaseLost
    assert len(errors) == 3
    assert log.lines("after its run had paused") == []


async def test_a_shutdown_before_the_questions_are_stored_asks_them_in_the_next_run(
    rt: Runtime, make: Factory
) -> None:
    entered = asyncio.Event()

    async def effect(_: str) -> int:
        entered.set()
        await asyncio.Event().wait()
        return 1

    async def handler(ctx: RunContext) -> Outcome:
        if ctx.job.run == 1:
            await asyncio.gather(ask(ctx, "one"), ctx.step("slow", effect))
        return Done({"answer": await ask(ctx, "one")})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await entered.wait()
    assert (await rt.read_model.job(number)).status is S.RESUMED
    assert (await rt.questions.of_job(number))[0] == []
    async with running_worker(runtime_with(rt), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        assert (await wait_for_end(rt, number)).result == {"answer": "yes"}
