"""Jobs whose claim the database refuses: others are claimed, and they are tried again later."""

from __future__ import annotations

import asyncio
import time

import pytest

from draftsman.database import isolation
from draftsman.database.database import Connection
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import Runtime
from draftsman.worker import claim_loop
from draftsman.worker.health_server import WorkerHealth
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    CapturedLog,
    noop,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.statements import run

S = Status
REFUSALS = """
CREATE TABLE draftsman.refusals (job bigint, status draftsman.job_status);
GRANT SELECT ON draftsman.refusals TO PUBLIC;
CREATE FUNCTION draftsman.refuse_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM draftsman.refusals
                WHERE job = NEW.number AND status = NEW.status) THEN
        RAISE EXCEPTION 'this job is refused' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refusals BEFORE UPDATE ON draftsman.job_states FOR EACH ROW
    EXECUTE FUNCTION draftsman.refuse_claim();
"""


@pytest.fixture(autouse=True)
async def refusals(conn: Connection) -> None:
    await conn.execute(REFUSALS)


async def refuse(conn: Connection, number: int, status: Status = S.RUNNING) -> None:
    """Refuse that a job gets this status."""
    await run(
        conn,
        "INSERT INTO draftsman.refusals VALUES (%s, %s::draftsman.job_status)",
        (number, str(status)),
    )


@pytest.mark.parametrize("slots", [1, 3])
async def test_a_job_whose_claim_is_refused_keeps_no_other_job_waiting(
    rt: Runtime,
    make: Factory,
    conn: Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    slots: int,
) -> None:
    captured = CapturedLog(caplog)
    bad, *good = [await make.queued(queue="default") for _ in range(5)]
    await refuse(conn, bad)
    async with running_worker(runtime_with(rt, poll=0.05), {"noop": noop}, slots=slots) as process:
        for number in good:
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
        later = await make.queued(queue="default")
        assert (await wait_for_end(rt, later)).status is S.COMPLETED
        assert (await rt.read_model.job(bad)).status is S.QUEUED
        await run(conn, "DELETE FROM draftsman.refusals")
        now = time.monotonic
        monkeypatch.setattr(time, "monotonic", lambda: now() + isolation.FIRST_PAUSE)
        process.worker.wake()
        assert (await wait_for_end(rt, bad)).status is S.COMPLETED
    assert len(captured.lines(f"claim: the database refuses D-{bad}, which")) == 1


async def test_a_job_claimed_ahead_that_cannot_be_started_is_released_and_others_start(
    rt: Runtime, make: Factory, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    started = asyncio.Event()
    go = asyncio.Event()

    async def handler(ctx: RunContext) -> Outcome:
        started.set()
        await go.wait()
        return Done()

    first, bad, good = [await make.queued(queue="default") for _ in range(3)]
    async with running_worker(
        runtime_with(rt, poll=0.05, prefetch=2), {"noop": handler}, slots=1
    ) as process:
        await started.wait()
        await wait_for_status(rt, bad, S.CLAIMED)
        await wait_for_status(rt, good, S.CLAIMED)
        await refuse(conn, bad)
        go.set()
        for number in (first, good):
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
        await captured.wait(f"D-{bad} cannot be started, and is released")
        await run(conn, "DELETE FROM draftsman.refusals")
        process.worker.wake()
        assert (await wait_for_end(rt, bad)).attempts == 0


async def test_a_worker_whose_exchange_fails_or_takes_too_long_is_not_ready(
    rt: Runtime, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = WorkerHealth()

    async def ready() -> bool:
        return health.as_json()["ready"] is True

    async def stalled() -> bool:
        return "claims" in health.problems()

    async with running_worker(runtime_with(rt, poll=0.05), {"noop": noop}) as process:
        health.process = process
        health.read_metrics = _no_metrics
        await until(ready, "the worker to be ready")
        await conn.execute("ALTER VIEW draftsman.claimable RENAME TO gone")
        await until(stalled, "the failed exchange")
        assert health.problems()["claims"].startswith("no exchange for 0 s")
        await conn.execute("ALTER VIEW draftsman.gone RENAME TO claimable")
        await until(ready, "the exchange to succeed again")
        (loop, *_) = process.worker._claim_loops
        async with loop.exchange_lock:  # an exchange that is under way
            monkeypatch.setattr(claim_loop, "MAX_EXCHANGE", 0.0)
            await until(stalled, "the exchange to take too long")
            body = health.as_json()
            text = await health.metrics()
        assert body["ready"] is False
        assert body["exchange_age"] >= 0.05
        assert body["unsettled"] == 0
        assert text is not None
        assert "\ndraftsman_worker_unsettled 0\n" in text
        ages = [line for line in text.splitlines() if line.startswith("draftsman_worker_exchange")]
        assert [float(line.split()[1]) >= 0 for line in ages] == [True]
        monkeypatch.undo()
        await until(ready, "the exchange to end")


async def test_a_leader_counts_the_jobs_that_are_refused_to_its_sweeps(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    health = WorkerHealth()
    health.read_metrics = _no_metrics

    async def counted() -> bool:
        return 'draftsman_sweep_refused{sweep="promote"} 1\n' in (await health.metrics() or "")

    bad = await make.scheduled(queue="default", delay=0.2)
    await refuse(conn, bad, S.QUEUED)
    async with running_worker(runtime_with(rt), {"noop": noop}, leader=True) as process:
        health.process = process
        await until(counted, "the refused job to be counted")
        later = await make.scheduled(queue="default", delay=0.2)
        assert (await wait_for_end(rt, later)).status is S.COMPLETED


async def _no_metrics() -> str:
    return ""
