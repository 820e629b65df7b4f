"""Shared helpers of the loop tests: workers in this process, and handlers that tests control."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest

from draftsman.database.database import Connection, Database
from draftsman.database.notification_listener import NotificationListener
from draftsman.errors import DatabaseUnreachable
from draftsman.events.event import Event
from draftsman.handlers.context import RunContext
from draftsman.handlers.registry import Handler
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.job import Job, Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import LeaderTerm, Run
from draftsman.runtime import Runtime, wire
from draftsman.settings.agents import AgentSettings
from draftsman.settings.job_types import TypeSettings
from draftsman.settings.limits import UsageSettings
from draftsman.settings.quotas import QuotaSettings
from draftsman.settings.secret import SecretSettings
from draftsman.settings.workers import SweepSettings, WorkerSettings
from draftsman.worker.registry.registered_worker import RegisteredWorker
from draftsman.worker.worker_process import WorkerProcess
from draftsman_testing.waits import DEADLINE, until

T = TypeVar("T")
RARELY = 60.0
"""An interval in seconds that does not pass during a test."""
FAST = {"poll": 0.5, "lease": RARELY, "drain": 0, "abort": 5}
"""A worker that aborts its runs at once at a shutdown. It polls seldom, as in production:
notifications wake it, and each poll costs statements."""
HEARTBEAT = 0.5
"""Interval of heartbeats in seconds, unless a short lease requires more."""


def runtime_with(
    rt: Runtime,
    db: Database | None = None,
    *,
    types: dict[str, dict[str, Any]] | None = None,
    sweeps: dict[str, Any] | None = None,
    data_dir: Path | None = None,
    agents: dict[str, Any] | None = None,
    quotas: dict[str, Any] | None = None,
    limits: dict[str, Any] | None = None,
    secrets: dict[str, Any] | None = None,
    ask_grace: float = 0,
    **worker: Any,
) -> Runtime:
    """Return services over the same database, with fast settings and these changes."""
    worker = {**FAST, **worker}
    worker.setdefault("heartbeat", min(HEARTBEAT, worker["lease"] / 20))
    values: dict[str, Any] = {"worker": WorkerSettings.model_validate(worker)}
    values["data_dir"] = data_dir or Path(os.environ["XDG_DATA_HOME"], uuid4().hex)
    values["types"] = {
        name: TypeSettings.model_validate(limits) for name, limits in (types or {}).items()
    }
    values["agents"] = {name: AgentSettings.of(agent) for name, agent in (agents or {}).items()}
    values["secrets"] = {
        name: SecretSettings.model_validate(source) for name, source in (secrets or {}).items()
    }
    values["limits"] = UsageSettings.model_validate(limits or {})
    values["quotas"] = QuotaSettings.model_validate(quotas or {})
    values["questions"] = rt.settings.questions.model_copy(update={"ask_grace": ask_grace})
    values["sweeps"] = SweepSettings.model_validate({"lease": 2} | (sweeps or {}))
    settings = rt.settings.model_copy(update=values)
    services = wire(settings, db or rt.db, False)
    vars(services)["schemas"] = rt.schemas  # which the fixture closes
    return services


def refuse_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the session of each listener fail, as behind a firewall."""

    async def fail(self: NotificationListener) -> None:
        raise DatabaseUnreachable("the test has no notifications")

    monkeypatch.setattr(NotificationListener, "_listen", fail)


@asynccontextmanager
async def running_worker(
    rt: Runtime,
    handlers: Mapping[str, Handler],
    *,
    slots: int = 2,
    leader: bool = False,
    queues: tuple[str, ...] | None = None,
    described: Sequence[TypeDescription] = (),
) -> AsyncIterator[WorkerProcess]:
    """Run a worker until the block ends, shut it down, and raise its error if it failed."""
    process = rt.worker_process(
        handlers, slots=slots, leader=leader, queues=queues, described=described
    )
    task = asyncio.create_task(process.run())
    try:
        await until(lambda: _is_registered(rt, process.id, task), "the worker's row")
        yield process
    finally:
        if not process.worker.stop:
            process.stop.set()
        async with asyncio.timeout(DEADLINE):
            await task


async def _is_registered(rt: Runtime, id: UUID, task: asyncio.Task[None]) -> bool:
    return task.done() or await row_of(rt, id) is not None


async def is_free(process: WorkerProcess) -> bool:
    """Return whether the worker runs no job."""
    return not process.worker.running


async def row_of(rt: Runtime, id: UUID) -> RegisteredWorker | None:
    """Return the row of a worker."""
    return next((worker for worker in await rt.read_model.workers() if worker.id == id), None)


async def wait_for_status(rt: Runtime, number: int, *statuses: Status) -> Job:
    """Wait until the job has any of these statuses; return it."""

    async def look() -> bool:
        return (await rt.read_model.job(number)).status in statuses

    await until(look, f"D-{number} {' or '.join(statuses)}")
    return await rt.read_model.job(number)


async def wait_for_end(rt: Runtime, number: int) -> Job:
    """Return the job once it ended, with any outcome."""
    async with asyncio.timeout(DEADLINE):
        await rt.read_model.wait(number)
    return await rt.read_model.job(number)


async def wait_for_question(rt: Runtime, number: int, ordinal: int = 1) -> None:
    """Return once a question of the job is open."""

    async def look() -> bool:
        return [item.ordinal for item in await rt.questions.open(number)] == [ordinal]

    await until(look, f"D-{number}/{ordinal} open")


async def rescue_live(rt: Runtime, worker: UUID) -> int:
    """End the leases of the runs of a live worker, and rescue their jobs; return their number."""

    async def work(conn: Connection) -> int:
        await conn.execute(
            "UPDATE draftsman.job_runs SET heartbeat_at = heartbeat_at - '1 day'::interval"
            " WHERE worker_id = %s AND status = 'running'",
            (worker,),
        )
        return await rt.dead_workers.rescue_runs(conn, LeaderTerm(), [])

    return await rt.db.run_transaction(work)


async def run_of(rt: Runtime, number: int, ordinal: int = 1) -> Run:
    """Return a run of a job."""
    return (await rt.read_model.runs(number))[ordinal - 1]


async def event_kinds(rt: Runtime, number: int) -> list[str]:
    """Return the kinds of a job's events, in order."""
    return [event.kind for event in await rt.read_model.job_events(number)]


async def last_event(rt: Runtime, number: int, kind: str) -> Event:
    """Return the newest event of a kind."""
    return [event for event in await rt.read_model.job_events(number) if event.kind == kind][-1]


async def before_deadline(awaited: Awaitable[T]) -> T:
    """Await a result, at most until the deadline."""
    return await asyncio.wait_for(awaited, DEADLINE)


async def noop(ctx: RunContext) -> Outcome:
    """Complete at once."""
    return Done({})


class BlockingHandler:
    """A handler that announces its runs, and blocks until it is released."""

    def __init__(self) -> None:
        self.entered: asyncio.Queue[RunContext] = asyncio.Queue()
        self.go = asyncio.Event()
        self.running = 0
        self.most = 0

    async def __call__(self, ctx: RunContext) -> Outcome:
        self.running += 1
        self.most = max(self.most, self.running)
        self.entered.put_nowait(ctx)
        try:
            await self.go.wait()
        finally:
            self.running -= 1
        return Done({"run": ctx.job.run})

    async def next(self) -> RunContext:
        """Return the context of the next run that entered."""
        return await before_deadline(self.entered.get())


class CapturedLog:
    """The log lines of draftsman, which a test can wait for."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "draftsman")
        self._caplog = caplog

    def lines(self, part: str) -> list[str]:
        """Return the messages that contain a text."""
        return [text for record in self._caplog.records if part in (text := record.getMessage())]

    async def wait(self, part: str, count: int = 1) -> None:
        """Return once this number of messages contain a text."""

        async def look() -> bool:
            return len(self.lines(part)) >= count

        await until(look, f"{count} x {part!r} in the log")
