"""The context of a handler: steps and checkpoints that survive its run, and questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from draftsman.errors import LeaseLost, UsageError
from draftsman.formats.times import format_time
from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import Done, Outcome, Parked, Snooze
from draftsman.jobs.runs.quota import Quota, QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman.worker import leader
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    last_event,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)
from tests.support.cases import cases
from tests.support.clock import Clock

S = Status
Work = Callable[[RunContext], Awaitable[Outcome]]


@pytest.fixture(autouse=True)
def _quick_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "TICK", 0.1)


def context(rt: Runtime, work: ClaimedJob) -> RunContext:
    """Return the context of the run's handler."""
    return RunContext(work, rt, 60)


async def rescue_job(rt: Runtime, make: Factory) -> None:
    """Return every job of the factory's worker to the status resumed."""
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) > 0


# --- steps and checkpoints -----------------------------------------------------------------------


async def test_a_later_run_gets_the_saved_checkpoint(rt: Runtime, make: Factory) -> None:
    work = await make.running(on_lost="resume")
    ctx = context(rt, work)
    assert await ctx.saved() is None
    await ctx.checkpoint({"page": 1})
    await ctx.checkpoint({"page": 2}, b"bundle")
    await rescue_job(rt, make)
    later = context(rt, await make.running(work.number))
    assert later.job.run == 2
    assert await later.saved() == {"page": 2}
    assert await worker_run(later).saved_work() == ({"page": 2}, b"bundle")


async def test_a_checkpoint_over_the_limit_is_refused_and_the_previous_checkpoint_stays(
    rt: Runtime, make: Factory
) -> None:
    ctx = context(rt, await make.running())
    await ctx.checkpoint({"small": 1})
    with pytest.raises(UsageError, match=r"a checkpoint has 1,048,\d+ bytes; at most 1,048,576"):
        await ctx.checkpoint({"big": "x" * 2**20})
    assert await ctx.saved() == {"small": 1}


class ExternalService:
    """An external system, which records each effect by its invocation id."""

    def __init__(self) -> None:
        self.effects: list[str] = []

    async def effect(self, invocation: str) -> int:
        self.effects.append(invocation)
        return len(self.effects)

    async def dies_after(self, invocation: str) -> int:
        await self.effect(invocation)
        raise LookupError("the process dies here")

    async def dies_before(self, invocation: str) -> int:
        raise LookupError("the process dies here")

    async def lookup(self, invocation: str) -> int | None:
        return 7 if invocation in self.effects else None


async def test_a_step_is_executed_once_and_its_result_is_stored(rt: Runtime, make: Factory) -> None:
    outside = ExternalService()
    work = await make.running(on_lost="resume")
    ctx = context(rt, work)
    assert [await ctx.step("pay", outside.effect) for _ in range(2)] == [1, 1]
    assert await ctx.step("post", outside.effect) == 2
    await rescue_job(rt, make)
    later = context(rt, await make.running(work.number))
    assert await later.step("pay", outside.effect, outside.lookup) == 1
    assert len(outside.effects) == 2


@pytest.mark.parametrize("value", [None, 0, "", False, [], {"a": [1, "two", None]}])
async def test_any_step_result_is_returned_unchanged(
    rt: Runtime, make: Factory, value: object
) -> None:
    ctx = context(rt, await make.running())
    effects = []

    async def effect(_: str) -> object:
        effects.append(1)
        return value

    assert await ctx.step("it", effect) == value
    assert await ctx.step("it", effect) == value
    assert effects == [1]


async def test_an_unrecorded_effect_is_looked_up_and_not_repeated(
    rt: Runtime, make: Factory
) -> None:
    outside = ExternalService()
    work = await make.running(on_lost="resume")
    with pytest.raises(LookupError):
        await context(rt, work).step("pay", outside.dies_after, outside.lookup)
    await rescue_job(rt, make)
    later = context(rt, await make.running(work.number))
    assert await later.step("pay", outside.effect, outside.lookup) == 7
    assert await later.step("pay", outside.effect) == 7
    assert len(outside.effects) == 1


async def test_a_missing_effect_is_executed_with_the_same_invocation_id(
    rt: Runtime, make: Factory
) -> None:
    outside = ExternalService()
    work = await make.running(on_lost="resume")
    with pytest.raises(LookupError):
        await context(rt, work).step("pay", outside.dies_before, outside.lookup)
    invocation = (await worker_run(context(rt, work)).steps())["pay"].invocation_id
    await rescue_job(rt, make)
    later = context(rt, await make.running(work.number))
    assert await later.step("pay", outside.effect, outside.lookup) == 1
    assert outside.effects == [invocation]


async def test_a_step_of_a_failed_run_is_not_repeated_by_the_next_run(
    rt: Runtime, make: Factory
) -> None:
    outside = ExternalService()

    async def handler(ctx: RunContext) -> Outcome:
        result = await ctx.step("pay", outside.effect)
        if ctx.job.run == 1:
            raise TimeoutError
        return Done({"got": result})

    number = await make.queued(queue="default")
    limits = {"noop": {"base_delay": 0.001, "max_delay": 0.001}}
    async with running_worker(runtime_with(rt, types=limits), {"noop": handler}, leader=True):
        job = await wait_for_end(rt, number)
    assert (job.result, job.run_count, len(outside.effects)) == ({"got": 1}, 2, 1)


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0.3, timedelta(seconds=0.3), "datetime"])
async def test_a_sleep_uses_no_slot_and_no_attempt(rt: Runtime, make: Factory, length: Any) -> None:
    woke: list[tuple[int, datetime]] = []
    ends_at: list[datetime] = []

    async def handler(ctx: RunContext) -> Outcome:
        ends_at.append(datetime.now(UTC) + timedelta(seconds=0.3))
        await ctx.sleep("nap", ends_at[0] if length == "datetime" else length)
        woke.append((ctx.job.run, datetime.now(UTC)))
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}, slots=1, leader=True) as process:
        await until(lambda: _sleeps(process, ends_at), "a free slot")
        job = await wait_for_end(rt, number)
    [(run, at)] = woke
    assert run == 2
    assert at >= ends_at[0] - timedelta(milliseconds=5)
    assert (job.status, job.attempts, job.retry_count) == (S.COMPLETED, 0, 0)
    assert (await run_of(rt, number)).status == "parked"


async def _sleeps(process: WorkerProcess, ends_at: list[datetime]) -> bool:
    return bool(ends_at) and process.worker.leases() == []


async def test_an_elapsed_sleep_does_not_park(rt: Runtime, make: Factory) -> None:
    ctx = context(rt, await make.running())
    await ctx.sleep("past", datetime.now(UTC) - timedelta(days=1))
    await ctx.sleep("now", 0)
    assert (await rt.read_model.job(ctx.job.number)).status is S.RUNNING


async def test_a_sleep_ends_at_the_time_of_its_first_run(rt: Runtime, make: Factory) -> None:
    work = await make.running()
    with pytest.raises(Parked):
        await context(rt, work).sleep("nap", 3600)
    why = await rt.read_model.why(work.number)
    first = (await rt.read_model.job(work.number)).run_at
    steps = await rt.checkpoints.steps(work.number)
    assert first is not None
    assert why.text == f"due in 60 min, at {format_time(first)}"
    assert why.next_step.startswith("the leader will queue it then")
    assert [(step.key, step.result) for step in steps] == [("sleep:nap", first.isoformat())]


async def test_the_reason_of_a_sleep_is_shown_until_it_ends(
    rt: Runtime, make: Factory, clock: Clock, owner: Actor
) -> None:
    work = await make.running()
    with pytest.raises(Parked):
        await context(rt, work).sleep("nap", 60, reason="waits for the tide\nand the wind")
    why = await rt.read_model.why(work.number)
    assert (why.reason, why.text) == ("scheduled", "waits for the tide")
    await clock.forward(61)
    await rt.sweeps.run_now("promote", owner)
    later = await make.running(work.number)
    await context(rt, later).sleep("nap", 60, reason="waits for the tide")
    await rt.settlement.outcome(later, Snooze(60))
    assert (await rt.read_model.why(work.number)).text.startswith("due in 60 s, at ")


@pytest.mark.parametrize("until", [datetime(2030, 1, 1), float("nan"), 1e30])  # noqa: DTZ001
async def test_an_invalid_sleep_time_is_refused(rt: Runtime, make: Factory, until: Any) -> None:
    ctx = context(rt, await make.running())
    with pytest.raises(UsageError):
        await ctx.sleep("nap", until)
    assert (await rt.read_model.job(ctx.job.number)).status is S.RUNNING


# --- events and files ----------------------------------------------------------------------


async def test_an_event_is_recorded_and_a_large_payload_is_truncated(
    rt: Runtime, make: Factory
) -> None:
    ctx = context(rt, await make.running())
    await ctx.event("page_read", {"page": 3})
    await ctx.event("noted")
    await ctx.event("too_much", {"text": "x" * 50_000})
    small = await last_event(rt, ctx.job.number, "page_read")
    assert (small.payload, small.run, small.actor) == ({"page": 3}, 1, f"worker:{make.worker}")
    assert (await last_event(rt, ctx.job.number, "noted")).payload == {}
    large = await last_event(rt, ctx.job.number, "too_much")
    assert large.payload["truncated"] is True
    assert len(str(large.payload)) < 10_000


OWN: dict[str, Callable[[RunContext], Awaitable[object]]] = {
    "step": lambda ctx: ctx.step("agent:publish", lambda _: 1),
    "step of sleep": lambda ctx: ctx.step("sleep:nap", lambda _: "2000-01-01T00:00:00+00:00"),
    "noted step": lambda ctx: worker_run(ctx).note_step("agent:push:1", "0" * 40),
    "finished step": lambda ctx: worker_run(ctx).finish_step("agent:base", "0" * 40),
    "question": lambda ctx: ctx.ask("agent:repository", "Which?", choices=["a", "b"]),
    "gate": lambda ctx: ctx.approve("sleep:x", "Well?"),
    "event": lambda ctx: ctx.event("question_escalated", {"question": "abc"}),
    "event of an agent": lambda ctx: ctx.event("agent.said"),
    "patch": lambda ctx: ctx.artifact("changes.patch", b"false"),
    "kind": lambda ctx: ctx.artifact("mine", b"false", "patch"),
    "bundle": lambda ctx: ctx.artifact("checkpoint.bundle", b"false"),
}


@cases("call", OWN)
async def test_a_handler_cannot_use_reserved_names(rt: Runtime, make: Factory, call: str) -> None:
    ctx = context(rt, await make.running())
    with pytest.raises(UsageError, match="reserved"):
        await OWN[call](ctx)
    assert await worker_run(ctx).steps(Owner.WORKER) == {}
    assert await rt.checkpoints.artifacts(ctx.job.number) == []


async def test_an_artifact_and_usage_are_stored(rt: Runtime, make: Factory) -> None:
    ctx = context(rt, await make.running())
    await ctx.artifact("report.md", b"# fine", "report")
    await ctx.usage({"input_tokens": 5})
    artifact, data = await rt.checkpoints.read_artifact(ctx.job.number, "report.md")
    assert (artifact.kind, artifact.run, data) == ("report", 1, b"# fine")
    assert (await run_of(rt, ctx.job.number)).usage == {"input_tokens": 5}
    with pytest.raises(UsageError, match="the maximum is 25 MB"):
        await ctx.artifact("big", bytes(25 * 2**20 + 1))


# --- the worker's side ---------------------------------------------------------------------------


async def test_the_workers_side_of_a_run_stores_questions_usage_and_logs(
    rt: Runtime, make: Factory
) -> None:
    beats: list[int] = []

    async def handler(ctx: RunContext) -> Outcome:
        run = worker_run(ctx)
        question = QuestionSpec(key="word", text="Which word?", choices=("yes", "no"))
        run.check_question(question)
        known = await run.find_answer(question)
        if known is None:
            assert (run.parked, run.ending) == (False, False)
            await run.ask_or_park(question)
        await run.step("agent:example", lambda invocation_id: 1, owner=Owner.WORKER)
        within = [await run.spend(Quota.STEPS, 10, QuotaLimit(1, 100)) for _ in range(2)]
        run.on_heartbeat(lambda: beats.append(1))
        run.beat()
        print("once more")  # noqa: T201
        opened = run.has_open_log
        await run.close()
        return Done({"known": known is not None, "within": within, "opened": opened})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": handler}, leader=True):
        await wait_for_question(rt, number)
        await make.answer(number, "yes")
        job = await wait_for_end(rt, number)
    assert job.result == {"known": True, "within": [True, False], "opened": True}
    assert beats[0] == 1
    assert [step.owner for step in await rt.checkpoints.steps(number)] == [Owner.WORKER]


# --- fencing -------------------------------------------------------------------------------------

WRITES: dict[str, Callable[[RunContext], Awaitable[object]]] = {
    "checkpoint": lambda ctx: ctx.checkpoint({"late": 1}),
    "step": lambda ctx: ctx.step("late", ExternalService().effect),
    "note_step": lambda ctx: worker_run(ctx).note_step("late"),
    "finish_step": lambda ctx: worker_run(ctx).finish_step("early", 2),
    "ask": lambda ctx: ctx.ask("late", "Which?", choices=["a"]),
    "approve": lambda ctx: ctx.approve("late", "Deploy?"),
    "sleep": lambda ctx: ctx.sleep("late", 60),
    "event": lambda ctx: ctx.event("late"),
    "artifact": lambda ctx: ctx.artifact("late", b"late"),
    "usage": lambda ctx: ctx.usage({"late": 1}),
}


@cases("cause", ["rescued", "claimed again", "canceled"])
@cases("write", WRITES)
async def test_a_run_that_lost_its_lease_writes_nothing_and_is_notified(
    rt: Runtime, make: Factory, write: str, cause: str
) -> None:
    work = await make.running(on_lost="resume")
    ctx = context(rt, work)
    await worker_run(ctx).note_step("early")
    if cause == "canceled":
        await rt.job_control.cancel(work.number, make.owner, force=True)
    else:
        await rescue_job(rt, make)
    if cause == "claimed again":
        await make.running(work.number)
    before = await stored_data(rt, work.number)
    with pytest.raises(LeaseLost, match=f"D-{work.number}"):
        await WRITES[write](ctx)
    ctx.log("late")
    await worker_run(ctx).close()
    assert await stored_data(rt, work.number) == before


async def stored_data(rt: Runtime, number: int) -> list[object]:
    """Return all write calls of a run."""
    return [
        await rt.read_model.job(number),
        await rt.read_model.job_events(number),
        await rt.read_model.runs(number),
        await rt.questions.of_job(number),
        await rt.checkpoints.latest(number),
        await rt.checkpoints.steps(number),
        await rt.checkpoints.artifacts(number),
        await rt.checkpoints.logs(number),
    ]
