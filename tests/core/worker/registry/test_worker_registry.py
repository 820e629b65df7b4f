"""The worker registry: live workers, their job types, and dead workers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from uuid import uuid4

import pytest

from draftsman.database.database import Connection, Database
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.processes import host
from draftsman.runtime import Runtime
from draftsman.worker.registry import store as workers
from draftsman.worker.registry.service import WorkerRegistration
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.support.clock import Clock
from tests.support.statements import value


def _presence(db: Database) -> WorkerRegistration:
    return WorkerRegistration(db, uuid4(), version="1", types=["noop"], queues=["q"], slots=3)


async def test_a_worker_is_registered_and_deregistered(db: Database, rt: Runtime) -> None:
    presence = _presence(db)
    await presence.register()
    (worker,) = await rt.read_model.workers()
    assert (worker.types, worker.queues, worker.slots) == (["noop"], ["q"], 3)
    assert (worker.host_id, worker.pid) == (host.identity(), os.getpid())
    assert (worker.busy, worker.draining, worker.connected) == (0, False, False)
    await presence.leave()
    assert await rt.read_model.workers() == []


async def test_a_session_lock_shows_that_a_worker_is_connected(
    db: Database, rt: Runtime, conn: Connection
) -> None:
    presence = _presence(db)
    await presence.register()
    await presence.hold(conn)
    (worker,) = await rt.read_model.workers()
    assert worker.connected
    await conn.close()

    async def gone() -> bool:
        return not (await rt.read_model.workers())[0].connected

    await until(gone, "the lock of a closed session to be free")


async def test_running_and_claimed_jobs_make_a_worker_busy(make: Factory, rt: Runtime) -> None:
    await make.worker_row(id=make.worker)
    await make.running()
    await make.claimed()
    await make.completed()
    (worker,) = await rt.read_model.workers()
    assert worker.busy == 2


async def test_the_owner_of_the_lease_is_the_leader(
    make: Factory, rt: Runtime, clock: Clock, db: Database
) -> None:
    await make.worker_row(id=make.worker)
    async with db.connection() as conn:
        await workers.acquire(conn, "leader", make.worker, 30)
    assert (await rt.read_model.workers())[0].leader
    await clock.forward(31)
    assert not (await rt.read_model.workers())[0].leader


async def test_a_dead_process_of_this_host_is_removed_at_once(make: Factory, rt: Runtime) -> None:
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    began = host.process_start_time(process.pid)
    await make.worker_row(host_id=host.identity(), pid=process.pid, pid_started=began)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    process.kill()
    await process.wait()
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1
    await make.worker_row(host_id=host.identity(), pid=os.getpid(), pid_started=1.0)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1, "another process has its number now"


async def test_a_worker_whose_session_lock_is_held_is_alive_until_its_lease_ends(
    make: Factory, rt: Runtime, db: Database, clock: Clock
) -> None:
    """Whatever its host says of the process: it may be a process of the same number elsewhere."""
    here = {"host_id": host.identity(), "pid": os.getpid(), "pid_started": 1.0}
    worker = await make.worker_row(**here)
    work = await make.running(worker=worker, on_lost="resume")
    session = await db.dedicated_connection()
    lock = await value(session, "SELECT lock_id FROM draftsman.workers")
    await workers.hold(session, lock)
    assert await rt.sweeps.acquire(worker, rt.settings.worker.lease * 2) == 1
    assert await rt.dead_workers.rescue(LeaderTerm()) == 0
    assert await rt.sweeps.acquire(uuid4(), 30) is None
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    assert not (await rt.read_model.workers())[0].lost
    await clock.forward(rt.settings.worker.lease + 1)
    assert await rt.dead_workers.rescue(LeaderTerm()) == 1, (
        "after the lease, the lock protects nobody"
    )
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0, "its session lock is held"
    await session.close()
    await until(lambda: _acquires(rt), "the lease of a leader whose process and session ended")
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1


async def _acquires(rt: Runtime) -> bool:
    return await rt.sweeps.acquire(uuid4(), 30) == 2


async def test_a_process_that_cannot_be_seen_is_dead_only_without_its_session(
    make: Factory, rt: Runtime, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of another user with hidden processes is like that of another host."""
    monkeypatch.setattr(host, "PROC", Path("/nonexistent"))
    await make.worker_row(host_id=host.identity(), pid=os.getpid(), pid_started=1.0)
    assert not await rt.sweeps.has_dead_local_workers()
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    await clock.forward(16)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1


async def test_a_dead_worker_that_still_holds_a_job_is_kept(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    await make.running()
    await clock.forward(86_401)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    assert await rt.dead_workers.rescue(LeaderTerm()) == 1
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1
    assert await rt.read_model.workers() == []


async def test_a_silent_worker_of_another_host_is_removed_after_a_day(
    make: Factory, rt: Runtime, clock: Clock, db: Database
) -> None:
    """Its session lock is held, so it is not dead."""
    id = await make.worker_row()
    session = await db.dedicated_connection()
    lock_id = await workers.register(session, id=id, **_row())  # type: ignore[arg-type]
    await workers.hold(session, lock_id)
    await clock.forward(86_399)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    await clock.forward(2)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1
    await session.close()


def _row() -> dict[str, object]:
    row: dict[str, object] = {"host": "", "host_id": "", "pid": 1, "pid_started": 0.0}
    return row | {"version": "", "types": [], "queues": [], "slots": 1}


async def test_a_worker_whose_session_is_gone_is_dead_after_fifteen_silent_seconds(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row()
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0, "its lock is free only since now"
    await clock.forward(14)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    await clock.forward(2)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 1


async def test_a_worker_with_heartbeats_is_alive_without_a_session(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    await make.worker_row(id=make.worker)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0
    await clock.forward(100)
    await rt.claim(make.worker, ()).heartbeat([], draining=False)
    assert await rt.dead_workers.deregister(LeaderTerm()) == 0


async def test_a_stopped_worker_with_a_job_stays_registered(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    worker = await make.worker_row()
    work = await make.running(worker=worker)
    await workers.remove(conn, worker)
    assert [row.id for row in await rt.read_model.workers()] == [worker]
    await rt.settlement.release_run(work, "shutdown")
    await workers.remove(conn, worker)
    assert await rt.read_model.workers() == []
