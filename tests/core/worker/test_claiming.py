"""Claims of a worker: as many jobs as it has slots, of types that a worker can run."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.processes import clock
from draftsman.runtime import Runtime
from draftsman.worker.claim_loop import MAX_EXCHANGE
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import (
    RARELY,
    BlockingHandler,
    CapturedLog,
    before_deadline,
    event_kinds,
    noop,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.statements import value

S = Status


async def statuses(rt: Runtime, *numbers: int) -> list[Status]:
    return [(await rt.read_model.job(number)).status for number in numbers]


async def test_a_worker_claims_for_its_free_slots_and_no_more(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    numbers = [await make.queued(queue="default") for _ in range(5)]
    async with running_worker(runtime_with(rt), {"noop": blocking}, slots=2):
        assert {(await blocking.next()).job.number for _ in range(2)} == set(numbers[:2])
        assert await statuses(rt, *numbers) == [S.RUNNING] * 2 + [S.QUEUED] * 3
        blocking.go.set()
        for number in numbers:
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
    assert blocking.most == 2


async def test_only_configured_queues_are_served_in_their_order(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    other = await make.queued(queue="other")
    slow = await make.queued(queue="slow")
    fast = await make.queued(queue="fast")
    async with running_worker(
        runtime_with(rt), {"noop": blocking}, slots=1, queues=("fast", "slow")
    ):
        assert (await blocking.next()).job.number == fast
        blocking.go.set()
        assert (await wait_for_end(rt, slow)).status is S.COMPLETED
        assert await statuses(rt, other) == [S.QUEUED]


async def test_a_later_job_is_claimed_by_notification_without_polling(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    async with running_worker(runtime_with(rt, poll=60), {"noop": blocking}) as process:
        await until(lambda: connected(rt, process.id), "the listener")
        number = await make.queued(queue="default")
        assert (await blocking.next()).job.number == number
        blocking.go.set()
        await wait_for_end(rt, number)


async def connected(rt: Runtime, worker: object) -> bool:
    rows = await rt.read_model.workers()
    return any(row.connected for row in rows if row.id == worker)


async def test_jobs_ahead_of_a_slot_stay_claimed_and_start_when_one_is_free(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    first, second, third = [await make.queued(queue="default") for _ in range(3)]
    async with running_worker(runtime_with(rt, prefetch=1), {"noop": blocking}, slots=1):
        await blocking.next()
        await wait_for_status(rt, second, S.CLAIMED)
        assert await statuses(rt, first, second, third) == [S.RUNNING, S.CLAIMED, S.QUEUED]
        blocking.go.set()
        for number in (first, second, third):
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
    assert await event_kinds(rt, second) == [
        "job_created",
        "job_claimed",
        "job_started",
        "job_completed",
    ]
    assert blocking.most == 1


async def test_a_job_canceled_ahead_of_its_slot_is_never_started(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    [_, second, third] = [await make.queued(queue="default") for _ in range(3)]
    async with running_worker(runtime_with(rt, prefetch=1), {"noop": blocking}, slots=1):
        await blocking.next()
        await wait_for_status(rt, second, S.CLAIMED)
        await rt.job_control.cancel(second, make.owner)
        blocking.go.set()
        assert (await wait_for_end(rt, third)).status is S.COMPLETED
        assert (await blocking.next()).job.number == third
    assert (await rt.read_model.job(second)).status is S.CANCELED
    assert await rt.read_model.runs(second) == []


async def test_a_finished_job_is_settled_by_the_statement_that_claims_the_next(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    first, second = [await make.queued(queue="default") for _ in range(2)]
    async with running_worker(runtime_with(rt), {"noop": blocking}, slots=1):
        await blocking.next()
        blocking.go.set()
        await wait_for_end(rt, second)
    same = await value(
        conn,
        "SELECT count(DISTINCT txid) FROM draftsman.job_events WHERE"
        " (job = %s AND kind = 'job_completed') OR (job = %s AND kind = 'job_started')",
        (first, second),
    )
    assert same == 1


async def test_a_finished_job_locked_by_another_session_is_settled_later(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    first = await make.queued(queue="default")
    async with running_worker(
        runtime_with(rt, poll=RARELY), {"noop": blocking}, slots=1
    ) as process:
        await blocking.next()
        async with conn.transaction():
            await conn.execute(
                "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (first,)
            )
            blocking.go.set()
            second = await make.queued(queue="default")
            assert (await wait_for_end(rt, second)).status is S.COMPLETED
            assert await statuses(rt, first) == [S.RUNNING]
            assert not process.worker.running
        assert (await wait_for_end(rt, first)).result == {"run": 1}


async def test_a_job_waits_for_a_worker_that_handles_its_type(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    number = await make.queued(type="special", queue="default", priority=9)
    after = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": noop}, slots=1):
        assert (await wait_for_end(rt, after)).status is S.COMPLETED
        assert (await rt.read_model.why(number)).reason == "unknown_type"
        async with running_worker(runtime_with(rt), {"special": blocking}) as second:
            assert (await blocking.next()).job.number == number
            assert (await rt.read_model.job(number)).worker_id == second.id
            blocking.go.set()
            job = await wait_for_end(rt, number)
    assert (job.status, job.run_count, job.attempts) == (S.COMPLETED, 1, 0)
    assert "job_returned" not in await event_kinds(rt, number)


async def test_the_answer_of_a_job_waits_for_a_worker_with_its_type(
    rt: Runtime, make: Factory
) -> None:
    """A rolling deploy: the workers that asked are away when the answer comes."""

    async def asking(ctx: RunContext) -> Outcome:
        await ctx.checkpoint({"step": 1})
        return Done({"answer": (await ctx.ask("which", "which?", freeform=True)).text})

    number = await make.queued(type="asking", queue="default")
    async with running_worker(runtime_with(rt), {"asking": asking}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
    async with running_worker(runtime_with(rt), {"noop": noop}):
        await make.answer(number, "blue")
        other = await make.queued(queue="default")
        assert (await wait_for_end(rt, other)).status is S.COMPLETED
        assert (await rt.read_model.job(number)).status is S.RESUMED
    async with running_worker(runtime_with(rt), {"asking": asking}):
        assert (await wait_for_end(rt, number)).result == {"answer": "blue"}


async def test_a_type_fails_without_a_worker_where_its_setting_says_so(
    rt: Runtime, make: Factory
) -> None:
    failing = {"gone": {"unhandled": "fail"}, "here": {"unhandled": "fail"}}
    jobs = {type: await make.queued(type=type, queue="default") for type in ("gone", "here", "odd")}
    held = await make.queued(type="gone", queue="default", concurrency_key="k")
    leading = runtime_with(rt, types=failing)
    async with running_worker(leading, {"here": noop}, leader=True):
        job = await wait_for_end(rt, jobs["gone"])
        assert (await wait_for_end(rt, jobs["here"])).status is S.COMPLETED
        assert (await wait_for_end(rt, held)).status is S.FAILED
        assert (await rt.read_model.job(jobs["odd"])).status is S.QUEUED
    assert (job.status, job.error_class) == (S.FAILED, "PERMANENT")
    assert job.last_error == "no live worker handles the type 'gone': unhandled = 'fail' in [types]"
    assert (await run_of(rt, jobs["gone"])).status == "failed"


async def test_a_result_refused_by_the_database_fails_only_its_job(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await conn.execute(
        "ALTER TABLE draftsman.job_states ADD CHECK (result IS NULL OR NOT result ? 'bad')"
    )
    barrier = asyncio.Barrier(2)

    async def bad(ctx: RunContext) -> Outcome:
        await barrier.wait()
        return Done({"bad": 1})

    async def good(ctx: RunContext) -> Outcome:
        await barrier.wait()
        return Done({"good": 1})

    refused = await make.queued(type="bad", queue="default")
    settled = await make.queued(type="good", queue="default")
    async with running_worker(runtime_with(rt), {"bad": bad, "good": good}):
        assert (await wait_for_end(rt, settled)).result == {"good": 1}
        job = await wait_for_end(rt, refused)
    assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")
    assert "the result was rejected: database error: new row" in (job.last_error or "")


async def test_a_job_claimed_before_an_outage_is_not_forgotten(
    rt: Runtime, make: Factory, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    first, second = [await make.queued(queue="default") for _ in range(2)]
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, prefetch=1), {"noop": blocking}, slots=1),
    ):
        await blocking.next()
        await wait_for_status(rt, second, S.CLAIMED)
        proxy.cut()
        blocking.go.set()
        await captured.wait("worker: database unavailable, retrying")
        proxy.mend()
        assert (await wait_for_end(rt, first)).status is S.COMPLETED
        assert (await wait_for_end(rt, second)).status is S.COMPLETED


@pytest.mark.parametrize("prefetch", [0, 1])
async def test_a_claim_with_a_lost_reply_is_repeated_without_using_an_attempt(
    rt: Runtime, make: Factory, database_url: str, prefetch: int
) -> None:
    blocking = BlockingHandler()
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, prefetch=prefetch), {"noop": blocking}, slots=1),
    ):
        if prefetch:
            await make.queued(queue="default")
            await blocking.next()
        proxy.drop_reply(b"unheard")
        number = await make.queued(queue="default", tags=("unheard",))
        await before_deadline(proxy.lost.wait())
        blocking.go.set()
        job = await wait_for_end(rt, number)
    assert (job.status, job.attempts, job.retry_count) == (S.COMPLETED, 0, 0)


async def test_a_start_with_a_lost_reply_is_repeated_without_using_an_attempt(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    blocking = BlockingHandler()
    first = await make.queued(queue="default")
    second = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, prefetch=1), {"noop": blocking}, slots=1),
    ):
        await blocking.next()
        await wait_for_status(rt, second, S.CLAIMED)
        proxy.drop_reply_to(b"COMMIT")
        blocking.go.set()
        await before_deadline(proxy.lost.wait())
        assert (await wait_for_end(rt, first)).status is S.COMPLETED
        job = await wait_for_end(rt, second)
    assert (job.status, job.attempts) == (S.COMPLETED, 0)


async def test_a_result_with_a_lost_reply_is_settled_once(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db), {"noop": blocking}, slots=1) as process,
    ):
        await blocking.next()
        proxy.drop_reply(b"completed")
        blocking.go.set()
        await before_deadline(proxy.lost.wait())
        await until(lambda: has_no_results(process), "the removal of the result")
        assert (await wait_for_end(rt, number)).result == {"run": 1}
    assert (await event_kinds(rt, number)).count("job_completed") == 1


async def has_no_results(process: WorkerProcess) -> bool:
    return not process.worker.leases()


async def test_a_worker_that_always_finds_jobs_does_not_look_stalled(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs end at once, so that a turn lasts as long as jobs are waiting."""
    now = clock.now
    ages = list[float]()
    numbers = [await make.queued(queue="default") for _ in range(6)]

    async def handler(ctx: RunContext) -> Outcome:
        ages.append(process.worker.silence)
        monkeypatch.setattr(clock, "now", lambda: now() + 20.0 * len(ages))
        return Done({})

    process = runtime_with(rt).worker_process({"noop": handler}, slots=1)
    async with background(process.worker.run()):
        for number in numbers:
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
    assert len(ages) == len(numbers)
    assert max(ages) < MAX_EXCHANGE, "it would not be ready"
