"""A worker survives outages: restarts, dropped connections, a read-only server."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from draftsman.database import notification_listener
from draftsman.database.database import Connection
from draftsman.errors import DatabaseUnreachable
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import (
    BlockingHandler,
    CapturedLog,
    is_free,
    noop,
    refuse_listening,
    row_of,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)

S = Status


async def connected(rt: Runtime, worker: object) -> bool:
    return any(row.connected for row in await rt.read_model.workers() if row.id == worker)


async def test_jobs_are_found_by_polling_without_notifications(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_listening(monkeypatch)
    blocking = BlockingHandler()
    blocking.go.set()
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        for _ in range(2):
            number = await make.queued(queue="default")
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
        assert not await connected(rt, process.id)


async def test_a_listener_reconnects_after_a_dropped_connection(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_listener, "RECONNECT", 0.02)
    blocking = BlockingHandler()
    blocking.go.set()
    async with running_worker(runtime_with(rt, poll=60), {"noop": blocking}) as process:
        await until(lambda: connected(rt, process.id), "the listener")
        await conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
        )
        await until(lambda: connected(rt, process.id), "the listener again")
        number = await make.queued(queue="default")
        assert (await wait_for_end(rt, number)).status is S.COMPLETED


async def test_a_worker_continues_after_all_its_connections_are_dropped(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": blocking}):
        await blocking.next()
        await conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        blocking.go.set()
        assert (await wait_for_end(rt, number)).result == {"run": 1}
        later = await make.queued(queue="default")
        assert (await wait_for_end(rt, later)).status is S.COMPLETED


async def test_an_outage_and_its_end_are_logged_once(
    rt: Runtime,
    make: Factory,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notification_listener, "RECONNECT", 0.05)
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db), {"noop": blocking}, slots=2) as process,
    ):
        await blocking.next()
        proxy.cut()
        await captured.wait("worker: database unavailable, retrying")
        await captured.wait("heartbeat: database unavailable, retrying")
        refused = proxy.refused
        await until(lambda: more(proxy.refused, refused + 2), "more attempts")
        proxy.mend()
        await captured.wait("worker: database available again")
        await captured.wait("heartbeat: database available again")
        blocking.go.set()
        assert (await wait_for_end(rt, number)).result == {"run": 1}
        assert await row_of(rt, process.id) is not None
    for part in ("worker", "heartbeat"):  # the dispatcher may poll in this time, or not
        assert len(captured.lines(f"{part}: database unavailable, retrying")) == 1
        assert len(captured.lines(f"{part}: database available again")) == 1
    assert (await rt.read_model.job(number)).attempts == 0


async def more(count: int, than: int) -> bool:
    return count >= than


@pytest.mark.parametrize("fails", [False, True])
async def test_results_of_an_outage_are_written_after_it(
    rt: Runtime, make: Factory, database_url: str, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)

    async def handler(ctx: RunContext) -> Outcome:
        await blocking(ctx)
        ctx.log("it ended")
        if fails:
            raise ValueError("it failed meanwhile")
        return Done({"effect": 1})

    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db), {"noop": handler}),
    ):
        await blocking.next()
        proxy.cut()
        blocking.go.set()
        await captured.wait(f"D-{number}: database unreachable")
        assert (await run_of(rt, number)).status == "running"
        proxy.mend()
        job = await wait_for_status(rt, number, S.RETRYING if fails else S.COMPLETED)
    assert (job.attempts, job.run_count) == (int(fails), 1)
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert log.startswith("it ended\n")
    assert ("ValueError: it failed meanwhile" in log) == fails


async def test_the_result_of_a_run_that_was_lost_in_an_outage_never_becomes_that_of_a_later_run(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    """The outage is longer than the lease. No heartbeat tells the worker that the run was lost."""
    blocking = BlockingHandler()
    number = await make.queued(queue="default", on_lost="resume")
    async with open_proxied(database_url) as (proxy, db):
        process = runtime_with(rt, db, poll=0.05).worker_process({"noop": blocking})
        async with background(process.worker.run()):
            await blocking.next()
            proxy.cut()
            blocking.go.set()
            await until(lambda: is_free(process), "the result of the first run")
            refused = proxy.refused
            await until(lambda: more(proxy.refused, refused + 1), "an attempt to settle it")
            assert await rt.dead_workers.rescue(LeaderTerm(), [process.id]) == 1
            proxy.mend()
            job = await wait_for_end(rt, number)
    assert (job.result, job.run_count) == ({"run": 2}, 2)
    assert [run.status for run in await rt.read_model.runs(number)] == ["interrupted", "completed"]
    assert not any((await rt.read_model.invariants()).values())


async def forgotten(process: WorkerProcess) -> bool:
    """Return whether the worker remembers no lost lease."""
    return not any(claim_loop.lost for claim_loop in process.worker._claim_loops)


@pytest.mark.parametrize("ends", [False, True])
async def test_a_run_that_was_lost_in_an_outage_is_left_to_the_rescue(
    rt: Runtime, make: Factory, database_url: str, ends: bool
) -> None:
    """Its handler has begun, so that it is no claim whose reply was lost: `on_lost` decides."""
    blocking = BlockingHandler()
    number = await make.queued(queue="default", on_lost="fail")
    async with open_proxied(database_url) as (proxy, db):
        process = runtime_with(rt, db, poll=0.05).worker_process({"noop": blocking})
        async with background(process.worker.run()):
            await blocking.next()
            proxy.cut()
            if ends:
                blocking.go.set()
                await until(lambda: is_free(process), "the result of the run")
            process.worker.renew_leases([lease.token for lease in process.worker.leases()], 0.0)
            process.worker.end_leases()
            await until(lambda: is_free(process), "the end of the run")
            refused = proxy.refused
            await until(lambda: more(proxy.refused, refused + 1), "another attempt to claim")
            proxy.mend()
            blocking.go.set()
            other = await make.queued(queue="default")
            assert (await wait_for_end(rt, other)).status is S.COMPLETED
            assert (await rt.read_model.job(number)).status is S.RUNNING
            (claim_loop,) = process.worker._claim_loops
            assert [lease.job for lease in claim_loop.lost] == [number]
            assert await rt.dead_workers.rescue(LeaderTerm(), [process.id]) == 1
            claim_loop.may_have_lost_claims = True
            process.worker.wake()
            await until(lambda: forgotten(process), "the next release of lost claims")
    job = await rt.read_model.job(number)
    assert (job.status, job.run_count) == (S.FAILED, 1)


async def test_a_read_only_server_is_not_polled_without_a_delay(
    rt: Runtime, conn: Connection, database_url: str, database: str
) -> None:
    await conn.execute(
        f'ALTER DATABASE "{database}" SET default_transaction_read_only = on'.encode()
    )
    clock = asyncio.get_running_loop().time
    poll = 0.1
    async with open_proxied(database_url) as (proxy, db):
        worker = runtime_with(rt, db, poll=poll).worker_process({"noop": noop}).worker
        async with background(worker.run()):
            await until(lambda: more(proxy.errors, 1), "a refusal")
            began = clock()
            before = proxy.errors
            await until(lambda: more(proxy.errors, before + 4), "four more attempts")
            most = (clock() - began) / poll + 2  # of those before and after the time measured
            assert proxy.errors - before <= most


async def test_a_connection_is_available_at_once_after_a_long_outage(
    database_url: str,
) -> None:
    """The pool's retries back off for 1, 2, 4, 8 s; it stops before that, and starts over."""
    async with open_proxied(database_url, pool_size=1) as (proxy, db):
        proxy.cut()

        async def tried() -> bool:
            with contextlib.suppress(DatabaseUnreachable):
                async with db.connection(0.05):
                    pass
            return proxy.refused >= 4

        await until(tried, "attempts of the pool")
        proxy.mend()
        async with db.connection(6):
            pass


async def test_a_session_that_breaks_during_its_setup_is_an_outage(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    async with open_proxied(database_url) as (proxy, db):
        proxy.drop_reply_to(b"plan_cache_mode")
        async with running_worker(runtime_with(rt, db), {"noop": noop}):
            number = await make.queued(queue="default")
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
        assert proxy.lost.is_set()
