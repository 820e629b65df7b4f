"""Ends of runs that the database refuses: repeated apart, without a slot, while the lease holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.worker.health_server import WorkerHealth
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    BlockingHandler,
    CapturedLog,
    noop,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.cases import cases
from tests.support.statements import run

S = Status
REFUSALS = """
CREATE TABLE draftsman.refusals (job bigint, state text, ends draftsman.job_status[]);
GRANT SELECT ON draftsman.refusals TO PUBLIC;
CREATE FUNCTION draftsman.refuse_end() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    refusal text := (SELECT state FROM draftsman.refusals
                      WHERE job = NEW.number AND NEW.status = ANY (ends));
BEGIN
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION 'refused with %', refusal USING ERRCODE = refusal;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refusals BEFORE UPDATE ON draftsman.job_states FOR EACH ROW
    WHEN (OLD.status = 'running' AND NEW.status <> 'running')
    EXECUTE FUNCTION draftsman.refuse_end();
"""
"""Refuses the end of the runs of certain jobs, as a lock, a trigger or another row may do."""
STATES = {
    "a lock": "55P03",
    "a serialization failure": "40001",
    "a deadlock": "40P01",
    "a read-only server": "25006",
    "a time limit": "57014",
    "a trigger": "DM001",
    "a check of another row": "23514",
    "a data error of another value": "22012",
    "an internal error": "XX000",
}


@pytest.fixture(autouse=True)
async def refusals(conn: Connection) -> None:
    await conn.execute(REFUSALS)


async def refuse(conn: Connection, number: int, state: str, *ends: Status) -> None:
    """Refuse these ends of a job's run, by default all."""
    await run(
        conn,
        "INSERT INTO draftsman.refusals VALUES (%s, %s, %s::draftsman.job_status[])",
        (number, state, [str(end) for end in ends or S]),
    )


async def accept(conn: Connection) -> None:
    await run(conn, "DELETE FROM draftsman.refusals")


def unsettled(process: WorkerProcess, count: int) -> Any:
    """Return a condition: so many ends were refused on their own."""

    async def look() -> bool:
        loops = process.worker._claim_loops
        return sum(item.refused for loop in loops for item in loop.apart.values()) == count

    return look


@asynccontextmanager
async def refused_run(
    rt: Runtime, make: Factory, conn: Connection, handler: Any, state: str
) -> AsyncIterator[tuple[WorkerProcess, int]]:
    """Give a worker with a single slot, and the job whose end is refused."""
    number = await make.queued(type="bad", queue="default")
    await refuse(conn, number, state)
    async with running_worker(runtime_with(rt), {"bad": handler, "noop": noop}, slots=1) as process:
        await until(unsettled(process, 1), "the refusal")
        yield process, number


@cases("cause", STATES)
async def test_a_completed_run_whose_end_is_refused_completes_later_and_delays_no_other(
    rt: Runtime, make: Factory, conn: Connection, caplog: pytest.LogCaptureFixture, cause: str
) -> None:
    captured = CapturedLog(caplog)
    blocking = BlockingHandler()
    bad = await make.queued(type="bad", queue="default")
    good = await make.queued(type="bad", queue="default")
    await refuse(conn, bad, STATES[cause], S.COMPLETED)  # a failure would be stored
    async with running_worker(runtime_with(rt), {"bad": blocking, "noop": noop}) as process:
        health = WorkerHealth()
        health.process = process
        await blocking.next()
        await blocking.next()
        blocking.go.set()
        assert (await wait_for_end(rt, good)).result == {"run": 1}
        await until(unsettled(process, 1), "the refusal")
        later = await make.queued(queue="default")
        assert (await wait_for_end(rt, later)).status is S.COMPLETED
        assert health.as_json()["ready"], "the worker works"
        assert health.as_json()["unsettled"] == 1
        assert (await rt.read_model.job(bad)).status is S.RUNNING
        await accept(conn)
        job = await wait_for_end(rt, bad)
    assert (job.status, job.result, job.attempts) == (S.COMPLETED, {"run": 1}, 0)
    assert (job.run_count, job.last_error) == (1, None)
    assert len(captured.lines(f"D-{bad}: the end of run 1 is not stored yet")) == 1


async def fail(ctx: RunContext) -> Outcome:
    raise Failure("the bank is closed", http_status=502)


async def cancel(ctx: RunContext) -> Outcome:
    return Cancel("no longer needed")


async def snooze(ctx: RunContext) -> Outcome:
    return Snooze(3600)


@cases(
    "handler, status, state",
    [
        (handler, status, state)
        for handler, status in ((fail, S.RETRYING), (cancel, S.CANCELED), (snooze, S.SCHEDULED))
        for state in ("55P03", "DM001", "23514")
    ],
)
async def test_any_other_end_that_is_refused_is_stored_later_and_keeps_no_slot(
    rt: Runtime, make: Factory, conn: Connection, handler: Any, status: Status, state: str
) -> None:
    async with refused_run(rt, make, conn, handler, state) as (_, bad):
        later = await make.queued(queue="default")
        assert (await wait_for_end(rt, later)).status is S.COMPLETED
        await accept(conn)
        job = await wait_for_status(rt, bad, status)
    assert (job.attempts, job.run_count) == (int(handler is fail), 1)
    assert (job.last_error or "").startswith("the bank is closed" if handler is fail else "")


async def test_a_worker_stops_with_a_refused_end_and_its_job_is_rescued(
    rt: Runtime, make: Factory, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    async with refused_run(rt, make, conn, noop, "DM001") as (process, bad):
        pass
    assert captured.lines(f"could not settle D-{bad}")
    await accept(conn)
    assert await rt.dead_workers.rescue(LeaderTerm(), [process.id]) == 1
    job = await rt.read_model.job(bad)
    assert (job.status, job.attempts) == (S.RETRYING, 1)


async def test_a_refused_end_is_dropped_once_the_lease_is_lost(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    async with refused_run(rt, make, conn, noop, "DM001") as (process, bad):
        await run(conn, "UPDATE draftsman.refusals SET ends = '{completed}'")
        late = runtime_with(rt, lease=0.01)

        async def is_rescued() -> bool:
            return await late.dead_workers.rescue(LeaderTerm()) == 1

        await until(is_rescued, "a heartbeat that is older than the lease")
        await until(unsettled(process, 0), "the end to be dropped")
        assert process.worker.leases() == []
    job = await rt.read_model.job(bad)
    assert (job.status, job.result) == (S.RETRYING, None)


async def test_claims_that_cannot_be_released_keep_no_worker_from_its_work(
    rt: Runtime, make: Factory, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    async with running_worker(runtime_with(rt, heartbeat=0.05), {"noop": noop}) as process:
        other = await make.queued(queue="other")
        await refuse(conn, other, "DM001")  # before the claim, which may be released at once
        lost = await make.running(other, worker=process.id)

        async def is_refused() -> bool:
            process.worker._claim_loops[0].may_have_lost_claims = True  # a release may be under way
            process.worker.wake()
            return bool(captured.lines("claims whose reply was lost are not released, retrying"))

        await until(is_refused, "the refused release")
        number = await make.queued(queue="default")
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
        await accept(conn)
        await wait_for_status(rt, lost.number, S.RESUMED)
    assert len(captured.lines("are not released, retrying")) == 1


def _set(**fields: Any) -> Failure:
    """Return a failure with attributes that were set after its check."""
    failure = Failure("the bank is busy")
    for name, value in fields.items():
        setattr(failure, name, value)
    return failure


@cases(
    "end",
    [
        _set(retry_after="7", declared="TRANSIENT_APP"),
        _set(code=123),
        _set(http_status="503"),
        _set(program_exit=2**40),
        Snooze(until="tomorrow"),  # type: ignore[arg-type]
        Snooze(until=datetime(2099, 1, 1)),  # noqa: DTZ001
        Cancel(reason=7),  # type: ignore[arg-type]
        "done",
    ],
    ids=lambda end: repr(vars(end) if isinstance(end, Failure) else end),
)
async def test_an_end_with_values_of_another_type_is_a_failure_that_counts(
    rt: Runtime, make: Factory, end: Any
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        if isinstance(end, Failure):
            raise end
        return end  # type: ignore[no-any-return]

    number = await make.queued(queue="default", max_attempts=2)
    async with running_worker(runtime_with(rt), {"noop": handler}):
        job = await wait_for_status(rt, number, S.RETRYING, S.FAILED)
    assert (job.run_count, (await run_of(rt, number)).status) == (1, "failed")
    if isinstance(end, Failure):
        assert (job.status, job.attempts) == (S.RETRYING, 1)
        assert (job.last_error or "").startswith(
            "the bank is busy; its details could not be stored"
        )
    else:
        assert (job.status, job.error_class) == (S.FAILED, "INVALID_OUTPUT")


async def test_a_temporary_refusal_of_a_write_of_a_run_is_waited_for(
    rt: Runtime, make: Factory, conn: Connection, database_url: str
) -> None:
    """A checkpoint, a step and a question meet the lock timeout of their session once each."""
    await conn.execute(
        "CREATE SEQUENCE draftsman.tries; GRANT USAGE ON SEQUENCE draftsman.tries TO PUBLIC;"
        " CREATE FUNCTION draftsman.refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF nextval('draftsman.tries') % 2 = 1 THEN"
        "     RAISE EXCEPTION 'the lock is held' USING ERRCODE = TG_ARGV[0];"
        " END IF; RETURN NEW; END $$;"
        " CREATE TRIGGER once BEFORE INSERT ON draftsman.job_checkpoints FOR EACH ROW"
        "     EXECUTE FUNCTION draftsman.refuse_once('55P03');"
        " CREATE TRIGGER once BEFORE INSERT ON draftsman.job_steps FOR EACH ROW"
        "     EXECUTE FUNCTION draftsman.refuse_once('25006');"
        " CREATE TRIGGER once BEFORE INSERT ON draftsman.job_questions FOR EACH ROW"
        "     EXECUTE FUNCTION draftsman.refuse_once('57014');"
    )

    async def handler(ctx: RunContext) -> Outcome:
        if ctx.job.run == 1:
            await ctx.checkpoint({"page": 3})
            await worker_run(ctx).step("effect", lambda _: 7)
        answer = await ctx.ask("pick", "Which?", choices=["red", "blue"])
        return Done({"answer": answer.value, "saved": await ctx.saved()})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, poll=0.02), {"noop": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "red")
        job = await wait_for_end(rt, number)
    assert (job.status, job.attempts) == (S.COMPLETED, 0)
    assert job.result == {"answer": "red", "saved": {"page": 3}}
