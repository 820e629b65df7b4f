"""What a worker counts of its runs, deliveries, sweeps and errors of the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from draftsman.database.database import DATABASE_ERRORS, Connection, Database
from draftsman.deliveries.dispatcher import LATENESS, SENT
from draftsman.errors import DatabaseUnreachable, Failure
from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
from draftsman.runtime import Runtime
from draftsman.worker.health_server import WorkerHealth
from draftsman.worker.leader import SWEPT
from draftsman.worker.run_metrics import ENDED, QUEUE_WAIT, SECONDS, STARTED
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    noop,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.statements import run


async def _asks(ctx: RunContext) -> Outcome:
    await ctx.ask("color", "Which color?", choices=["red", "blue"])
    return Done({})


async def _is_canceled(_: RunContext) -> Outcome:
    return Cancel("not needed")


async def _sleeps(_: RunContext) -> Outcome:
    return Snooze(datetime.now(UTC) + timedelta(hours=1))


async def _fails(_: RunContext) -> Outcome:
    raise Failure("no such thing", declared="PERMANENT")


async def _is_busy(_: RunContext) -> Outcome:
    raise Failure("busy", declared="TRANSIENT_INFRA")


@pytest.mark.parametrize(
    ("handler", "status", "outcome"),
    [
        (noop, Status.COMPLETED, "completed"),
        (_asks, Status.WAITING_FOR_INPUT, "waiting"),
        (_is_canceled, Status.CANCELED, "canceled"),
        (_sleeps, Status.SCHEDULED, "scheduled"),
        (_fails, Status.FAILED, "failed"),
        (_is_busy, Status.RETRYING, "retrying"),
    ],
)
async def test_the_end_of_each_run_is_counted_once_with_its_outcome(
    rt: Runtime,
    make: Factory,
    handler: Callable[[RunContext], Awaitable[Outcome]],
    status: Status,
    outcome: str,
) -> None:
    number = await make.queued()
    queue = (await rt.read_model.job(number)).queue
    async with running_worker(runtime_with(rt), {"noop": handler}, queues=(queue,)):
        await wait_for_status(rt, number, status)
    assert STARTED.value(queue, "noop") == 1
    assert ENDED.value(queue, "noop", outcome) == 1
    assert SECONDS.count(queue, "noop") == QUEUE_WAIT.count(queue, "noop") == 1


@pytest.mark.parametrize("prefetch", [0, 1])
async def test_the_wait_for_a_worker_is_that_before_the_run_started(
    rt: Runtime, make: Factory, conn: Connection, prefetch: int
) -> None:
    """Of a job that was claimed ahead, until it got its slot; of a later run, since its answer."""
    first = await make.queued()
    queue = (await rt.read_model.job(first)).queue
    second = await make.queued(queue=queue)
    await run(
        conn,
        "UPDATE draftsman.job_states SET queued_at = draftsman.now() - interval '100 s'"
        " WHERE number = %(job)s",
        {"job": first},
    )
    waits: dict[str, float] = {}

    async def asks(ctx: RunContext) -> Outcome:
        run = worker_run(ctx).job
        waits[f"{run.number}.{run.run}"] = run.waited or 0.0
        await asyncio.sleep(0.2)  # what a job that was claimed ahead waits for
        await ctx.ask("color", "Which color?", choices=["red", "blue"])
        return Done({})

    workers = runtime_with(rt, prefetch=prefetch)
    async with running_worker(workers, {"noop": asks}, queues=(queue,), slots=1):
        for number in (first, second):
            await wait_for_status(rt, number, Status.WAITING_FOR_INPUT)
        await make.answer(first, "red")
        await wait_for_end(rt, first)
    assert 100 <= waits[f"{first}.1"] < 160
    assert 0.2 <= waits[f"{second}.1"] < 60
    assert 0 <= waits[f"{first}.2"] < 60
    assert QUEUE_WAIT.count(queue, "noop") == 3
    text = QUEUE_WAIT.render()
    assert f'draftsman_queue_wait_seconds_bucket{{queue="{queue}",type="noop",le="60"}} 2' in text


async def test_a_run_that_is_aborted_by_a_shutdown_was_resumed(rt: Runtime, make: Factory) -> None:
    number = await make.queued()
    queue = (await rt.read_model.job(number)).queue

    began = asyncio.Event()

    async def waits(_: RunContext) -> Outcome:
        began.set()
        await asyncio.Event().wait()
        return Done({})

    async with running_worker(runtime_with(rt), {"noop": waits}, queues=(queue,)):
        await began.wait()
    assert STARTED.value(queue, "noop") == 1
    assert ENDED.value(queue, "noop", "resumed") == 1


async def test_a_result_that_another_transaction_delays_is_counted_when_it_is_settled(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    number = await make.queued()
    queue = (await rt.read_model.job(number)).queue
    ends = asyncio.Event()
    began = asyncio.Event()

    async def waits(_: RunContext) -> Outcome:
        began.set()
        await ends.wait()
        return Done({})

    async with running_worker(runtime_with(rt), {"noop": waits}, queues=(queue,)) as process:
        await began.wait()
        async with conn.transaction():
            await run(
                conn,
                "SELECT FROM draftsman.job_states WHERE number = %(job)s FOR UPDATE",
                {"job": number},
            )
            ends.set()

            async def skipped() -> bool:
                return process.worker.skipped_settlements > 0

            await until(skipped, "a settlement that was skipped")
            assert ENDED.value(queue, "noop", "completed") == 0
        await wait_for_end(rt, number)
    assert ENDED.value(queue, "noop", "completed") == SECONDS.count(queue, "noop") == 1


async def test_metrics_of_a_worker_have_its_runs_and_the_age_of_its_heartbeat(
    rt: Runtime, make: Factory
) -> None:
    number = await make.queued()
    queue = (await rt.read_model.job(number)).queue
    health = WorkerHealth()
    health.read_metrics = rt.metrics
    async with running_worker(runtime_with(rt), {"noop": noop}, queues=(queue,)) as process:
        health.process = process
        await wait_for_end(rt, number)
        text = await health.metrics()
    assert text is not None
    families = {family.name: family for family in text_string_to_metric_families(text)}
    labels = {"queue": queue, "type": "noop", "outcome": "completed"}
    assert labels in [sample.labels for sample in families["draftsman_runs_ended"].samples]
    assert families["draftsman_run_seconds"].type == "histogram"
    (beat,) = families["draftsman_worker_heartbeat_age_seconds"].samples
    assert 0 <= beat.value < 60


async def test_a_sent_message_is_counted_with_its_lateness(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    before = SENT.value("log", "sent"), LATENESS.count("log")
    number = await make.queued(notify=("log",))
    queue = (await rt.read_model.job(number)).queue
    async with running_worker(runtime_with(rt), {"noop": noop}, queues=(queue,)):
        await wait_for_end(rt, number)

        async def counted() -> bool:
            return SENT.value("log", "sent") > before[0] and LATENESS.count("log") > before[1]

        await until(counted, "a sent message")


async def test_sweeps_of_the_leader_are_counted_with_the_time_of_their_success(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    before = SWEPT.value("promote")
    number = await make.scheduled()
    await run(
        conn,
        "UPDATE draftsman.job_states SET run_at = draftsman.now() WHERE number = %(job)s",
        {"job": number},
    )
    async with running_worker(runtime_with(rt), {"noop": noop}, leader=True) as process:
        await wait_for_status(rt, number, Status.QUEUED)
        assert process.leader is not None
        swept = process.leader.swept

        async def counted() -> bool:
            return SWEPT.value("promote") > before and "promote" in swept

        await until(counted, "the sweep")
    assert swept == {}, "it is the leader no more"


async def test_errors_of_the_database_are_counted_by_kind(db: Database, conn: Connection) -> None:
    before = {kind: DATABASE_ERRORS.value(kind) for kind in ("timeout", "other", "schema")}
    with pytest.raises(DatabaseUnreachable):
        await db.run_transaction(_takes_too_long)
    counts = {kind: DATABASE_ERRORS.value(kind) - before[kind] for kind in before}
    assert counts == {"timeout": 1, "other": 0, "schema": 0}


async def _takes_too_long(conn: Connection) -> None:
    await conn.execute("SET LOCAL statement_timeout = 1")
    await conn.execute("SELECT pg_sleep(10)")
