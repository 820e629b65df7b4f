"""The leader: exactly one worker sweeps, and another takes over when it stops."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.processes import host
from draftsman.questions.question import Answered
from draftsman.runtime import Runtime
from draftsman.worker.leader import first_runs
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until, wait_blocked
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import (
    CapturedLog,
    event_kinds,
    last_event,
    noop,
    row_of,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.statements import rows, value

S = Status
SELDOM = {"interval": 3600}
"""Only the sweeps of a new leader, and of the timer."""


def test_events_of_forges_wait_for_no_interval(rt: Runtime) -> None:
    sweeps = {sweep.name: sweep for sweep in rt.sweeps.all}
    chosen = [sweeps[name] for name in ("follow_ups", "rescue", "prune")]
    assert [sweep.interval(60.0) for sweep in chosen] == [5.0, 60.0, 3600.0]
    assert [sweep.interval(0.5) for sweep in chosen] == [0.5, 0.5, 3600.0]


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Give a process for the row of a worker."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


async def leads(rt: Runtime, process: WorkerProcess) -> bool:
    row = await row_of(rt, process.id)
    return row is not None and row.leader


async def worker_of(make: Factory, process: subprocess.Popen[bytes]) -> UUID:
    """Register a worker on this host with the pid of the process."""
    began = host.process_start_time(process.pid)
    return await make.worker_row(
        host_id=host.identity(), pid=process.pid, pid_started=began, types=["noop"]
    )


async def test_one_worker_leads_and_another_takes_over_when_it_stops(
    rt: Runtime, conn: Connection
) -> None:
    async with (
        running_worker(runtime_with(rt), {"noop": noop}) as idle,
        running_worker(runtime_with(rt), {"noop": noop}, leader=True) as leader,
    ):
        await until(lambda: leads(rt, leader), "the first leader")
        async with running_worker(runtime_with(rt), {"noop": noop}, leader=True) as successor:
            terms = await rows(conn, "SELECT owner, term FROM draftsman.leases")
            assert terms == [(leader.id, 1)]
            leader.stop.set()
            await until(lambda: leads(rt, successor), "the second leader")
            assert not await leads(rt, idle)
            assert await value(conn, "SELECT term FROM draftsman.leases") == 2


async def test_a_leader_that_stops_resigns(rt: Runtime, conn: Connection) -> None:
    async with running_worker(
        runtime_with(rt, sweeps={"lease": 600}), {"noop": noop}, leader=True
    ) as process:
        await until(lambda: leads(rt, process), "the leader")
    query = "SELECT expires_at <= draftsman.now() FROM draftsman.leases"
    assert await value(conn, query) is True


async def test_a_leader_stopped_during_a_sweep_logs_no_error(
    rt: Runtime, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    locking = await rt.db.dedicated_connection()
    quick = runtime_with(rt, sweeps={"interval": 0.05, "lease": 600})
    async with running_worker(quick, {"noop": noop}, leader=True) as process:
        await until(lambda: leads(rt, process), "the leader")
        async with locking.transaction():
            await locking.execute("LOCK draftsman.job_states")
            await wait_blocked(conn, by=locking.info.backend_pid, sessions=2)
            assert process.leader is not None
            process.leader.stop.set()
            await until(lambda: _has_resigned(conn), "the end of the leadership")
    await locking.close()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_sweep_due_while_the_leader_stops_is_no_error(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shut_down = AsyncIOScheduler.shutdown

    def late(scheduler: AsyncIOScheduler, wait: bool) -> None:
        shut_down(scheduler, wait)  # takes effect with the loop's next step
        for job in scheduler.get_jobs():
            job.modify(next_run_time=datetime.now(UTC))
        scheduler._process_jobs()

    monkeypatch.setattr(AsyncIOScheduler, "shutdown", late)
    async with running_worker(runtime_with(rt), {"noop": noop}, leader=True) as process:
        await until(lambda: leads(rt, process), "the leader")
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def _has_resigned(conn: Connection) -> bool:
    return bool(await value(conn, "SELECT expires_at <= draftsman.now() FROM draftsman.leases"))


async def test_the_lease_of_a_dead_leader_is_taken_over_at_once(
    rt: Runtime, make: Factory, process: subprocess.Popen[bytes], conn: Connection
) -> None:
    old = await worker_of(make, process)
    assert await rt.sweeps.acquire(old, 3600) == 1
    async with running_worker(runtime_with(rt), {"noop": noop}, leader=True) as leader_process:
        process.kill()
        await until(lambda: leads(rt, leader_process), "the new leader")
        assert await value(conn, "SELECT term FROM draftsman.leases") == 2


async def test_the_lease_of_a_live_leader_is_not_taken_over(
    rt: Runtime, make: Factory, process: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    old = await worker_of(make, process)
    captured = CapturedLog(caplog)
    assert await rt.sweeps.acquire(old, 3600) == 1
    async with running_worker(runtime_with(rt), {"noop": noop}, leader=True) as leader_process:
        assert leader_process.leader is not None
        await leader_process.leader._campaign()
        assert leader_process.leader._term is None
    assert captured.lines("leading") == []


def test_the_first_sweeps_of_a_leader_are_spread_over_an_interval(rt: Runtime) -> None:
    first = first_runs(rt.sweeps.all, 60)
    at_start = {sweep.name for sweep in rt.sweeps.all if sweep.name not in first}
    assert at_start == {"declared_schedules", "limits", "budgets", "rescue", "deregister"}
    assert 0 < first.pop("types") <= 2
    assert 0 < first.pop("suspects") <= 2
    assert 0 < first.pop("follow_ups") <= 5
    times = sorted(first.values())
    assert times[-1] <= 60
    assert all(later - earlier > 3 for earlier, later in pairwise([0.0, *times]))


@pytest.mark.machine_clock("events have the time of the server")
async def test_every_sweep_runs_in_the_first_interval_of_a_leader(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    lost = await make.running(worker=await make.worker_row())
    await conn.execute(
        "UPDATE draftsman.job_runs SET heartbeat_at = draftsman.now() - interval '1 hour'"
    )
    await conn.execute(
        "UPDATE draftsman.workers SET heartbeat_at = draftsman.now() - interval '2 days'"
    )
    partitions = await value(conn, COUNT)
    newest = await value(
        conn,
        "SELECT max(relname) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'job_events_2%'",
    )
    await conn.execute(f"DROP TABLE draftsman.{newest}".encode())
    async with running_worker(
        runtime_with(rt, sweeps={"interval": 1}), {"other": noop}, leader=True
    ):
        await wait_for_status(rt, lost.number, S.RETRYING)
        await until(lambda: counts(conn, partitions), "the recreated partition")
    assert await value(conn, "SELECT count(*) FROM draftsman.workers") == 0


COUNT = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'draftsman.job_events'::regclass"


async def counts(conn: Connection, expected: int) -> bool:
    return bool(await value(conn, COUNT) == expected)


async def test_sweeps_are_repeated_after_the_interval(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    async with running_worker(
        runtime_with(rt, sweeps={"interval": 0.1}), {"other": noop}, leader=True
    ) as process:
        await until(lambda: leads(rt, process), "the leader")
        for _ in range(2):
            lost = await make.running(worker=await make.worker_row())
            await conn.execute(
                "UPDATE draftsman.job_runs SET heartbeat_at = draftsman.now() - interval '1 hour'"
                " WHERE job = %s",
                (lost.number,),
            )
            await wait_for_status(rt, lost.number, S.RETRYING)


async def promoted_late(rt: Runtime, number: int, due: datetime) -> float:
    """Return by how many seconds a job was late when it became claimable."""
    events = await rt.read_model.job_events(number)
    moved = [e for e in events if e.kind in ("job_promoted", "job_woken", "job_retried")]
    return (moved[-1].created_at - due).total_seconds()


@pytest.mark.machine_clock("events have the time of the server")
async def test_a_scheduled_job_is_promoted_to_the_second(rt: Runtime, make: Factory) -> None:
    async with running_worker(
        runtime_with(rt, sweeps=SELDOM), {"noop": noop}, leader=True
    ) as process:
        await until(lambda: leads(rt, process), "the leader")
        number = await make.queued(queue="default", delay=0.5)
        job = await wait_for_end(rt, number)
    assert job.run_at is not None
    assert 0 <= await promoted_late(rt, number, job.run_at) < 1.5


@pytest.mark.machine_clock("events have the time of the server")
async def test_a_retry_is_promoted_to_the_second(rt: Runtime, make: Factory) -> None:
    due: list[Job] = []

    async def handler(ctx: RunContext) -> Outcome:
        if ctx.job.run == 1:
            raise Failure("busy", http_status=503, retry_after=0.5)
        due.append(await rt.read_model.job(ctx.job.number))
        return Done({})

    limits = {"noop": {"base_delay": 0.001, "max_delay": 0.001}}
    number = await make.queued(queue="default")
    async with running_worker(
        runtime_with(rt, types=limits, sweeps=SELDOM), {"noop": handler}, leader=True
    ):
        failed = await wait_for_status(rt, number, S.RETRYING)
        assert failed.next_retry_at is not None
        job = await wait_for_end(rt, number)
    assert (job.status, job.retry_count, job.run_count) == (S.COMPLETED, 1, 2)
    assert 0 <= await promoted_late(rt, number, failed.next_retry_at) < 1.5


@pytest.mark.machine_clock("events have the time of the server")
async def test_an_unanswered_question_is_closed_at_its_expiry(rt: Runtime, make: Factory) -> None:
    answers: list[object] = []

    async def handler(ctx: RunContext) -> Outcome:
        answers.append(
            await ctx.ask(
                "pick",
                "Which?",
                choices=["a", "b"],
                expires_in=0.5,
                on_expire="default",
                default="b",
            )
        )
        return Done({})

    async with running_worker(
        runtime_with(rt, sweeps=SELDOM), {"noop": handler}, leader=True
    ) as process:
        await until(lambda: leads(rt, process), "the leader")
        number = await make.queued(queue="default")
        await wait_for_end(rt, number)
    question = await rt.questions.get(number, 1)
    assert question.expires_at is not None
    closed = await last_event(rt, number, "question_expired")
    assert 0 <= (closed.created_at - question.expires_at).total_seconds() < 1.5
    [answer] = answers
    assert isinstance(answer, Answered)
    assert (answer.value, answer.via) == ("b", "policy")


async def test_the_runs_of_a_dead_local_worker_are_rescued_at_once(
    rt: Runtime, make: Factory, process: subprocess.Popen[bytes], conn: Connection
) -> None:
    old = await make.worker_row()
    await conn.execute(
        "UPDATE draftsman.workers SET heartbeat_at = draftsman.now() - interval '2 days'"
    )
    dead = await worker_of(make, process)
    work = await make.running(worker=dead, queue="default", on_lost="resume")
    ahead = await make.claimed(worker=dead, queue="default")
    async with running_worker(runtime_with(rt, sweeps=SELDOM), {"noop": noop}, leader=True):
        await until(lambda: is_gone(rt, old), "the end of the first sweeps")
        assert (await rt.read_model.job(work.number)).status is S.RUNNING
        process.kill()  # a zombie until the fixture waits for it
        began = asyncio.get_running_loop().time()
        job = await wait_for_end(rt, work.number)
        assert asyncio.get_running_loop().time() - began < 4
        assert (await wait_for_end(rt, ahead.number)).attempts == 0
        await until(lambda: is_gone(rt, dead), "the removal of the dead worker's row")
    assert (job.status, job.attempts, job.run_count) == (S.COMPLETED, 1, 2)
    assert (await run_of(rt, work.number)).error == "the worker was lost"


async def test_a_reused_pid_does_not_count_as_the_dead_worker(
    rt: Runtime, make: Factory, process: subprocess.Popen[bytes]
) -> None:
    began = host.process_start_time(process.pid)
    assert began is not None
    old = {"host_id": host.identity(), "pid": process.pid}
    dead = await make.worker_row(**old, pid_started=began - 1000)
    alive = await make.worker_row(**old, pid_started=began)
    lost = await make.running(worker=dead)
    alive_job = await make.running(worker=alive)
    async with running_worker(runtime_with(rt, sweeps=SELDOM), {"noop": noop}, leader=True):
        await wait_for_status(rt, lost.number, S.RETRYING)
        await until(lambda: is_gone(rt, dead), "the removal of the dead worker's row")
    assert (await rt.read_model.job(alive_job.number)).status is S.RUNNING
    assert not await is_gone(rt, alive)


async def is_gone(rt: Runtime, worker: UUID) -> bool:
    return await row_of(rt, worker) is None


async def test_a_leader_whose_lease_was_taken_stops_leading(
    rt: Runtime, make: Factory, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    other = await make.worker_row()
    async with running_worker(
        runtime_with(rt, sweeps=SELDOM), {"noop": noop}, leader=True
    ) as process:
        await until(lambda: leads(rt, process), "the leader")
        await conn.execute(
            "UPDATE draftsman.leases"
            " SET owner = %s, term = 2, expires_at = draftsman.now() + interval '1 h'",
            (other,),
        )
        due = await make.queued(queue="default", delay=0.001)
        await captured.wait("no longer leader, term 1")
        assert (await rt.read_model.job(due)).status is S.SCHEDULED
    assert await value(conn, "SELECT expires_at > draftsman.now() FROM draftsman.leases") is True


async def test_a_leader_that_cannot_renew_its_lease_stops_leading(
    rt: Runtime, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    captured = CapturedLog(caplog)
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, sweeps={"lease": 1}), {"noop": noop}, leader=True),
    ):
        await captured.wait("became leader, term 1")
        proxy.cut()
        await captured.wait("no longer leader, term 1")
        proxy.mend()
        await captured.wait("became leader, term 2")


async def test_two_leaders_at_once_do_no_harm(
    rt: Runtime, make: Factory, conn: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """The first renews its lease once in five minutes, so it does not notice the second."""
    captured = CapturedLog(caplog)
    ran = []

    async def handler(ctx: RunContext) -> Outcome:
        ran.append(ctx.job.number)
        return Done({})

    first = runtime_with(rt, sweeps={"lease": 600, "interval": 0.05})
    second = runtime_with(rt, sweeps={"interval": 0.5})
    async with running_worker(first, {"noop": handler}, leader=True):
        await captured.wait("became leader, term 1")
        await conn.execute("UPDATE draftsman.leases SET expires_at = draftsman.now()")
        async with running_worker(second, {"noop": handler}, leader=True):
            await captured.wait("became leader, term 2")
            due = [await make.queued(queue="default", delay=0.000001) for _ in range(8)]
            lost = [(await make.running(queue="dead")).number for _ in range(3)]
            await conn.execute(
                "UPDATE draftsman.job_runs SET heartbeat_at = draftsman.now() - '1 h'::interval"
                " WHERE job IN (SELECT number FROM draftsman.jobs WHERE queue = 'dead')"
            )
            await make.worker_row(host_id=host.identity(), pid=2**22 + 1)
            for number in lost:
                await wait_for_status(rt, number, S.RETRYING, S.QUEUED)  # it is promoted soon
            for number in due:
                await wait_for_end(rt, number)
            assert not captured.lines("no longer leading")
    assert sorted(ran) == due
    for number in due:
        assert (await event_kinds(rt, number)).count("job_promoted") == 1
    assert {(await rt.read_model.job(number)).attempts for number in lost} == {1}
    assert not any((await rt.read_model.invariants()).values())
