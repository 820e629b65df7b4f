"""The heartbeat: it proves that the worker is alive, and reports lost runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from draftsman.database.database import Connection, Database
from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.processes import clock
from draftsman.runtime import ENUMS, Runtime
from draftsman.settings.database import DatabaseSettings
from draftsman.worker import heartbeat
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until, wait_blocked
from tests.core.worker.cuttable_proxy import CuttableProxy, open_proxied
from tests.core.worker.workers import (
    FAST,
    BlockingHandler,
    CapturedLog,
    before_deadline,
    is_free,
    noop,
    refuse_listening,
    rescue_live,
    row_of,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.clock import Clock
from tests.support.statements import run, value

S = Status


async def connected(rt: Runtime, worker: UUID) -> bool:
    row = await row_of(rt, worker)
    return row is not None and row.connected


async def has_heartbeat(rt: Runtime, worker: UUID, than: datetime | None = None) -> bool:
    row = await row_of(rt, worker)
    return row is not None and (than is None or row.heartbeat_at > than)


async def test_heartbeats_are_sent_for_the_worker_and_its_runs(rt: Runtime, make: Factory) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        ctx = await blocking.next()
        beats: asyncio.Queue[None] = asyncio.Queue()
        worker_run(ctx).on_heartbeat(lambda: beats.put_nowait(None))
        row = await row_of(rt, process.id)
        run = await run_of(rt, number)
        assert row is not None
        await until(
            lambda: has_heartbeat(rt, process.id, row.heartbeat_at), "the worker's heartbeat"
        )
        await before_deadline(beats.get())
        await before_deadline(beats.get())
        assert (await run_of(rt, number)).heartbeat_at > run.heartbeat_at


async def test_a_run_that_lost_its_lease_is_stopped_with_a_warning(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    number = await make.queued(queue="default", on_lost="fail")
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        ctx = await blocking.next()
        assert await rescue_live(rt, process.id) == 1
        before = await rt.read_model.job_events(number)
        await captured.wait(f"D-{number} lost its lease; the run was stopped without a result")
        assert (worker_run(ctx).stopping, process.worker.leases()) == ("lost", [])
    assert await rt.read_model.job_events(number) == before


async def test_a_heartbeat_does_not_include_a_run_that_lost_its_lease(
    rt: Runtime, make: Factory
) -> None:
    blocking = BlockingHandler()
    await make.queued(queue="default", on_lost="fail")
    async with running_worker(runtime_with(rt, heartbeat=20), {"noop": blocking}) as process:
        ctx = await blocking.next()
        beats = []
        worker_run(ctx).on_heartbeat(lambda: beats.append(1))
        await process.heartbeat.beat()
        assert beats == [1]
        await rescue_live(rt, process.id)
        await process.heartbeat.beat()
        assert (beats, worker_run(ctx).stopping) == ([1], "lost")


async def test_a_worker_that_was_silent_longer_than_its_lease_stops_its_runs(
    rt: Runtime,
    make: Factory,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    silent = 0.0
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + silent)
    number = await make.queued(queue="default", on_lost="resume")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db), {"noop": blocking}) as process,
    ):
        ctx = await blocking.next()
        proxy.cut()
        silent = FAST["lease"]
        await captured.wait(f"no heartbeat was confirmed for a lease: stopping D-{number} run 1")
        assert worker_run(ctx).stopping == "lost"
        assert (await run_of(rt, number)).status == "running"
        proxy.mend()
        assert await rescue_live(rt, process.id) == 1
        assert (await blocking.next()).job.run == 2
    assert (await rt.read_model.job(number)).attempts == 1


async def test_worker_that_was_suspended_during_a_heartbeat_sends_another_one_at_once(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocking = BlockingHandler()
    suspended = 0.0
    now = clock.now
    await make.queued(queue="default", on_lost="fail")
    monkeypatch.setattr(clock, "now", lambda: now() + suspended)
    async with running_worker(
        runtime_with(rt, lease=700, heartbeat=300), {"noop": blocking}
    ) as own:
        ctx = await blocking.next()
        send = own.worker.claim.heartbeat

        async def suspend(*args: Any, **kwargs: Any) -> Any:
            nonlocal suspended
            monkeypatch.setattr(own.worker.claim, "heartbeat", send)
            reply = await send(*args, **kwargs)
            suspended += 701.0
            await rescue_live(rt, own.id)
            return reply

        monkeypatch.setattr(own.worker.claim, "heartbeat", suspend)
        await own.heartbeat.beat()
        await until(lambda: is_lost(ctx), "the run to be stopped")


async def test_a_run_stops_before_its_lease_ends_behind_a_network_that_drops_packets(
    rt: Runtime, make: Factory, database_url: str
) -> None:
    """The heartbeat waits for a reply, and nothing tells it that the connection is dead."""
    blocking = BlockingHandler()
    lease = 2.0
    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, lease=lease), {"noop": blocking}),
    ):
        ctx = await blocking.next()
        with dropping_packets(proxy):
            await until(lambda: is_lost(ctx), "the run to be stopped")
            await until(lambda: has_no_run(blocking), "the end of the handler")
            query = (
                "SELECT heartbeat_at + make_interval(secs => %s) > draftsman.now()"
                " FROM draftsman.job_runs WHERE job = %s"
            )
            async with rt.db.connection() as conn:
                assert await value(conn, query, (lease, number)), "it ended after its lease"


@contextmanager
def dropping_packets(proxy: CuttableProxy) -> Iterator[None]:
    """Drop all packets in the block, and the sessions at its end: nothing else ends their calls."""
    proxy.drop_packets()
    try:
        yield
    finally:
        proxy.cut()


async def has_no_run(blocking: BlockingHandler) -> bool:
    return blocking.running == 0


async def test_a_result_is_dropped_when_its_lease_ends_before_it_is_stored(
    rt: Runtime, make: Factory, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    captured = CapturedLog(caplog)
    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, lease=1.0), {"noop": blocking}) as process,
    ):
        await blocking.next()
        with dropping_packets(proxy):
            blocking.go.set()
            await captured.wait(
                f"no heartbeat was confirmed for a lease: stopping D-{number} run 1"
            )
            assert process.worker.leases() == []


async def test_a_run_that_is_locked_during_a_heartbeat_keeps_the_end_of_its_lease(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    rarely = runtime_with(rt, heartbeat=25)
    async with running_worker(rarely, {"noop": blocking}) as process:
        await blocking.next()
        (execution,) = process.worker.running.values()
        end = execution.lease_end
        async with conn.transaction():
            await conn.execute(
                "SELECT FROM draftsman.job_runs WHERE job = %s FOR NO KEY UPDATE", (number,)
            )
            await process.heartbeat.beat()
            assert execution.lease_end == end
        await process.heartbeat.beat()
        assert execution.lease_end > end
        blocking.go.set()
        await wait_for_end(rt, number)


async def is_lost(ctx: RunContext) -> bool:
    return worker_run(ctx).stopping == "lost"


@pytest.mark.parametrize("pool_size", [1, 5])
async def test_a_worker_keeps_its_lease_while_every_connection_of_its_pool_is_blocked(
    rt: Runtime,
    make: Factory,
    conn: Connection,
    database_url: str,
    pool_size: int,
) -> None:
    blocking = BlockingHandler()
    lease = 1.0
    number = await make.queued(queue="default")
    async with (
        small_pool(database_url, pool_size) as db,
        running_worker(runtime_with(rt, db, lease=lease), {"noop": blocking}) as process,
    ):
        await blocking.next()
        async with conn.transaction(), AsyncExitStack() as stack:
            await conn.execute(LOCK)
            for _ in range(pool_size):
                blocked = await stack.enter_async_context(db.connection())
                await stack.enter_async_context(background(blocked.execute(LOOK)))
            await wait_blocked(conn, by=conn.info.backend_pid, sessions=pool_size)
            began = (await run_of(rt, number)).heartbeat_at
            over = began + timedelta(seconds=1.5 * lease)
            await until(
                lambda: has_beaten_once(rt, number, over), "heartbeats for longer than a lease"
            )
            assert await runtime_with(rt, lease=lease).dead_workers.rescue(LeaderTerm()) == 0
            await rt.db.run_transaction(lambda mine: run(mine, "DELETE FROM draftsman.workers"))
            await until(lambda: has_heartbeat(rt, process.id), "the worker's row again")
        blocking.go.set()
        assert (await wait_for_end(rt, number)).run_count == 1


LOCK = "LOCK TABLE draftsman.approval_tokens IN ACCESS EXCLUSIVE MODE"
LOOK = "SELECT FROM draftsman.approval_tokens"


@asynccontextmanager
async def small_pool(url: str, pool_size: int) -> AsyncIterator[Database]:
    """Give a pool of this size."""
    db = Database(url, DatabaseSettings(pool_size=pool_size), enums=ENUMS)
    await db.open()
    try:
        yield db
    finally:
        await db.close()


async def test_the_heartbeat_reconnects_after_a_dropped_connection(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        await blocking.next()
        async with process.worker.claim.heartbeat_session.connection(5) as session_conn:
            pid = session_conn.info.backend_pid
        await value(conn, "SELECT pg_terminate_backend(%s, 10000)", (pid,))
        before = (await run_of(rt, number)).heartbeat_at
        await until(
            lambda: has_beaten_once(rt, number, before), "a heartbeat after the dropped connection"
        )


async def test_a_worker_that_was_removed_as_dead_registers_and_locks_again(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    async with running_worker(runtime_with(rt), {"noop": noop}) as process:
        await until(lambda: connected(rt, process.id), "the session lock")
        await conn.execute("DELETE FROM draftsman.workers")
        await until(lambda: has_heartbeat(rt, process.id), "the worker's row")
        await until(lambda: connected(rt, process.id), "the session lock again")
        row = await row_of(rt, process.id)
        assert row is not None
        assert row.types == ["noop"]


async def test_the_session_lock_is_held_until_the_worker_ends(
    rt: Runtime, conn: Connection
) -> None:
    async with running_worker(runtime_with(rt), {"noop": noop}) as process:
        await until(lambda: connected(rt, process.id), "the session lock")
        assert await locks(conn) == 1
    assert await row_of(rt, process.id) is None
    await until(lambda: no_lock_is_held(conn), "the end of its session")


async def no_lock_is_held(conn: Connection) -> bool:
    return await locks(conn) == 0


async def locks(conn: Connection) -> int:
    count: int = await value(
        conn,
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    return count


@pytest.mark.parametrize("listens", [True, False])
async def test_a_live_worker_of_another_host_keeps_its_runs_between_heartbeats(
    rt: Runtime,
    make: Factory,
    conn: Connection,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    listens: bool,
) -> None:
    """The session lock shows that it is alive; without a listener it beats more often."""
    monkeypatch.setattr(heartbeat, "TICK", 0.02)
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    if not listens:
        refuse_listening(monkeypatch)
    slow = runtime_with(rt, heartbeat=20)
    async with running_worker(slow, {"noop": blocking}) as process:
        await blocking.next()
        await until(lambda: is_registered(rt, process, listens), "the state of the lock")
        await conn.execute("UPDATE draftsman.workers SET host_id = 'far'")
        assert await rt.dead_workers.rescue(LeaderTerm()) == 0  # notes since when the lock is free
        await clock.forward(16)
        before = await value(conn, "SELECT draftsman.now()")
        if not listens:
            await until(lambda: has_heartbeat(rt, process.id, before), "a heartbeat without a lock")
        assert await rt.dead_workers.rescue(LeaderTerm()) == 0
        blocking.go.set()
        assert (await wait_for_end(rt, number)).run_count == 1


async def is_registered(rt: Runtime, process: WorkerProcess, listens: bool) -> bool:
    return not listens or await connected(rt, process.id)


async def test_a_job_can_be_claimed_again_while_its_lost_run_ends(
    rt: Runtime, make: Factory
) -> None:
    entered: asyncio.Queue[RunContext] = asyncio.Queue()
    go = {1: asyncio.Event(), 2: asyncio.Event()}

    async def stubborn(ctx: RunContext) -> Outcome:
        entered.put_nowait(ctx)
        while not go[ctx.job.run].is_set():
            try:
                await go[ctx.job.run].wait()
            except asyncio.CancelledError:
                continue
        return Done({"run": ctx.job.run})

    number = await make.queued(queue="default", on_lost="resume")
    async with running_worker(runtime_with(rt, abort=0), {"noop": stubborn}) as process:
        first = await before_deadline(entered.get())
        await rescue_live(rt, process.id)
        second = await before_deadline(entered.get())
        assert (second.job.run, worker_run(second).stopping) == (2, None)
        await until(lambda: is_stopping(first), "the stop of the first run")
        go[1].set()
        await until(lambda: is_only_run(process, 2), "the first run's end")
        began = (await run_of(rt, number, 2)).heartbeat_at
        await until(lambda: has_beaten(rt, number, began), "a heartbeat of the second run")
        assert worker_run(second).stopping is None
        go[2].set()
        assert (await wait_for_end(rt, number)).result == {"run": 2}


async def is_stopping(ctx: RunContext) -> bool:
    return worker_run(ctx).stopping == "lost"


async def is_only_run(process: WorkerProcess, run: int) -> bool:
    return [lease.run for lease in process.worker.leases()] == [run]


async def has_beaten(rt: Runtime, number: int, after: datetime) -> bool:
    return (await run_of(rt, number, 2)).heartbeat_at > after


async def test_a_finished_run_that_cannot_be_settled_keeps_its_heartbeat(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    blocking = BlockingHandler()
    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt), {"noop": blocking}) as process:
        await blocking.next()
        async with conn.transaction():
            await conn.execute(
                "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (number,)
            )
            blocking.go.set()
            await until(lambda: is_free(process), "the handler's end")
            began = (await run_of(rt, number)).heartbeat_at
            await until(
                lambda: has_beaten_once(rt, number, began), "a heartbeat of the finished run"
            )
        await wait_for_status(rt, number, S.COMPLETED)


async def has_beaten_once(rt: Runtime, number: int, after: datetime) -> bool:
    return (await run_of(rt, number)).heartbeat_at > after


async def test_a_parked_run_can_clean_up_undisturbed(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    tidying = asyncio.Event()
    go = asyncio.Event()
    tidied = []

    async def handler(ctx: RunContext) -> Outcome:
        try:
            await ctx.ask("pick", "Which?", choices=["a"])
        finally:
            tidying.set()
            await go.wait()
            tidied.append(worker_run(ctx).stopping)
        return Done({})

    number = await make.queued(queue="default")
    async with running_worker(runtime_with(rt, heartbeat=20), {"noop": handler}) as process:
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await before_deadline(tidying.wait())
        await process.heartbeat.beat()
        go.set()
        await until(lambda: is_free(process), "the handler's end")
    assert tidied == [None]
    assert captured.lines("lost its job") == []
