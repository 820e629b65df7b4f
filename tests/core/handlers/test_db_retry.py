"""Retries of a run's calls during an outage of the database, each with a single effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from draftsman.database.database import Database
from draftsman.errors import DatabaseUnreachable, DraftsmanError, LeaseLost
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.worker_run import wait_for_database
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.runtime import ENUMS, Runtime
from draftsman.settings.database import DatabaseSettings
from draftsman.settings.workers import WorkerSettings
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.conftest import SERVER
from tests.core.database.embedded.embedded_support import shared_initdb
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.cuttable_proxy import CuttableProxy, open_proxied
from tests.core.worker.workers import (
    BlockingHandler,
    CapturedLog,
    event_kinds,
    run_of,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.support.server import Server, make_home

S = Status
COMMIT = b"COMMIT\0"
QUICK = WorkerSettings(poll=0.01, heartbeat=0.01, lease=0.05)
PATIENT = WorkerSettings(poll=0.001)
AGENT = """
def tell(type, **fields):
    say(type, id=type, **fields)
    assert hear()["type"] == "ack"
tell("event", kind="looked", payload={"at": "it"})
tell("step", key="effect", state="done", invocation_id="once", result=7)
tell("checkpoint", data={"page": 3})
open("work.txt", "w").write("work")
tell("artifact", path="work.txt")
tell("usage", input_tokens=5)
tell("usage", input_tokens=5)
if ask("pick")["type"] == "park":
    sys.exit(0)
say("result", summary="done")
"""


async def store_all_kinds(ctx: RunContext) -> dict[str, Any]:
    """Call every method that does not park; return the read values and effects."""
    effects: list[str] = []
    looked: list[str] = []

    def effect(invocation: str) -> int:
        effects.append(invocation)
        return 7

    def lookup(invocation: str) -> int | None:
        looked.append(invocation)
        return None

    paid = await ctx.step("pay", effect, lookup)
    for page in (1, 2, 2):
        await ctx.checkpoint({"page": page}, b"bundle")
        await ctx.event("page_read", {"page": page})
    await ctx.artifact("notes.md", b"notes")
    await ctx.usage({"input_tokens": 5})
    run = worker_run(ctx)
    read: dict[str, Any] = {
        "saved": await ctx.saved(),
        "steps": list(await run.steps()),
    }
    read |= {"bundle": str((await run.saved_work())[1]), "answers": await run.answers()}
    return read | {"made": len(effects), "looked": len(looked), "paid": paid}


READ = {
    "saved": {"page": 2},
    "steps": ["pay"],
    "bundle": "b'bundle'",
    "answers": {},
    "made": 1,
    "looked": 0,
    "paid": 7,
}


async def check_stored_once(rt: Runtime, number: int) -> None:
    """Check the rows of a run against its calls."""
    events = await rt.read_model.job_events(number)
    pages = [event.payload["page"] for event in events if event.kind == "page_read"]
    assert pages == [1, 2, 2]
    assert (await rt.checkpoints.read_artifact(number, "notes.md"))[1] == b"notes"
    assert (await run_of(rt, number)).usage == {"input_tokens": 5}
    assert [step.status for step in await rt.checkpoints.steps(number)] == ["done"]


@pytest.mark.parametrize("lost", [COMMIT, b"job_events", b"job_checkpoints", b"job_steps"])
async def test_a_call_whose_reply_is_lost_is_retried_with_a_single_effect(
    rt: Runtime, make: Factory, database_url: str, lost: bytes
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        proxy.drop_every_other_reply_to(lost)
        return Done(await store_all_kinds(ctx))

    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url, connect_timeout=10) as (proxy, db),
        running_worker(runtime_with(rt, db, poll=0.02), {"noop": handler}),
    ):
        job = await wait_for_end(rt, number)
    assert proxy.lost.is_set()
    assert (job.status, job.attempts, job.run_count) == (S.COMPLETED, 0, 1), job.last_error
    assert job.result == READ
    await check_stored_once(rt, number)


@pytest.mark.parametrize("wait", ["ask", "approve", "sleep"])
async def test_a_park_with_a_lost_reply_ends_the_run(
    rt: Runtime, make: Factory, database_url: str, people: People, wait: str
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        proxy.drop_every_other_reply_to(COMMIT)
        if wait == "sleep":
            await ctx.sleep("nap", 3600)
        elif wait == "approve":
            await ctx.approve("gate", "Deploy?", approvers=["carol"])
        else:
            await ctx.ask("pick", "Which?", choices=["a"])
        return Done({"run": ctx.job.run})

    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url, connect_timeout=10) as (proxy, db),
        running_worker(runtime_with(rt, db, poll=0.02), {"noop": handler}) as process,
    ):
        parked = {"ask": S.WAITING_FOR_INPUT, "approve": S.WAITING_FOR_APPROVAL}
        waits = await wait_for_status(rt, number, parked.get(wait, S.SCHEDULED))
        assert proxy.lost.is_set()
        assert (waits.attempts, waits.last_error) == (0, None)
        process.stop.set()
    assert len((await rt.questions.of_job(number))[0]) == int(wait != "sleep")
    assert (await run_of(rt, number)).status == "parked"
    assert await rt.read_model.job(number) == waits


@pytest.mark.slow(fast="test_a_call_whose_reply_is_lost_is_retried_with_a_single_effect")
async def test_agent_messages_are_stored_once_despite_lost_replies(
    rt: Runtime, make: Factory, database_url: str, tmp_path: Path
) -> None:
    repo = make_repository(tmp_path / "repo")
    number = await submit_agent_job(make, repo)
    async with open_proxied(database_url, connect_timeout=10) as (proxy, db):
        proxy.drop_every_other_reply_to(COMMIT)
        async with agent_worker(rt, tmp_path / "data", AGENT, db=db, poll=0.02):
            await wait_for_question(rt, number)
            waits = await rt.read_model.job(number)
    assert proxy.lost.is_set()
    assert (waits.status, waits.attempts, waits.run_count) == (S.WAITING_FOR_INPUT, 0, 1)
    assert (await event_kinds(rt, number)).count("agent.looked") == 1
    assert (await event_kinds(rt, number)).count("repo_resolved") == 1
    data, bundle = await rt.checkpoints.latest(number)
    assert data is not None
    assert data["agent"] == {"page": 3}
    assert bundle is None
    assert ((await run_of(rt, number)).usage or {})["input_tokens"] == 10
    steps = {step.key: step for step in await rt.checkpoints.steps(number)}
    assert (steps["effect"].invocation_id, steps["effect"].result) == ("once", 7)


class TestARealServer:
    @pytest.fixture
    def server(self, pytestconfig: pytest.Config) -> Iterator[Server]:
        """Give a private server that a test can stop."""
        own = Server(make_home(), None)
        with shared_initdb(pytestconfig.stash[SERVER].home):
            own.admin.close()
        yield own
        own.end()

    @pytest.fixture
    def database(self, own_database: str) -> str:
        """Give a database on it."""
        return own_database

    @pytest.fixture
    async def hasty(self, database_url: str) -> AsyncIterator[Database]:
        """Give the worker a pool with a short connection timeout."""
        db = Database(database_url, DatabaseSettings(connect_timeout=0.3), enums=ENUMS)
        await db.open()
        yield db
        await db.close()

    @pytest.mark.slow(fast="test_a_call_waits_until_the_database_is_reachable")
    async def test_a_long_job_survives_more_database_restarts_than_its_attempts(
        self,
        rt: Runtime,
        make: Factory,
        server: Server,
        hasty: Database,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        ready: asyncio.Queue[int] = asyncio.Queue()
        log = CapturedLog(caplog)
        stopped = asyncio.Event()

        async def handler(ctx: RunContext) -> Outcome:
            for restart in range(2):
                ready.put_nowait(restart)
                await stopped.wait()
                await ctx.event("survived", {"restart": restart})
            return Done(await store_all_kinds(ctx))

        number = await make.queued(queue="default", max_attempts=1)
        async with running_worker(runtime_with(rt, hasty), {"noop": handler}):
            for _ in range(2):
                restart = await asyncio.wait_for(ready.get(), 10)
                await asyncio.to_thread(server.stop)
                stopped.set()
                await log.wait(f"D-{number}: database unreachable", restart + 1)
                stopped.clear()
                await asyncio.to_thread(server.start)
            job = await wait_for_end(rt, number)
        assert (job.status, job.attempts, job.run_count) == (S.COMPLETED, 0, 1), job.last_error
        assert (await event_kinds(rt, number)).count("survived") == 2
        await check_stored_once(rt, number)


async def test_a_run_that_waits_for_the_database_is_released_by_a_shutdown(
    rt: Runtime, make: Factory, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    blocking = BlockingHandler()
    log = CapturedLog(caplog)

    async def handler(ctx: RunContext) -> Outcome:
        await blocking(ctx)
        await ctx.checkpoint({"page": 1})
        return Done({})

    number = await make.queued(queue="default")
    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db, poll=0.02), {"noop": handler}) as process,
    ):
        ctx = await blocking.next()
        await _cut_and_wait(proxy, blocking, log, f"D-{number}: database unreachable")
        process.stop.set()
        await until(lambda: _is_stopping(ctx), "the stop of the run")
        proxy.mend()
        job = await wait_for_status(rt, number, S.RESUMED)
    assert (job.attempts, job.last_error) == (0, None)


async def _is_stopping(ctx: RunContext) -> bool:
    return worker_run(ctx).stopping is not None


async def _cut_and_wait(
    proxy: CuttableProxy, handler: BlockingHandler, log: CapturedLog, line: str
) -> None:
    proxy.cut()
    handler.go.set()
    await log.wait(line)


# --- duration of retries -------------------------------------------------------------------------


class UnreachableCall:
    """A call that fails a number of times as without a database."""

    def __init__(self, times: int = 10**6) -> None:
        self.left = times
        self.tries = 0

    async def __call__(self) -> str:
        self.tries += 1
        if self.tries > self.left:
            return "there"
        raise DatabaseUnreachable


async def test_a_call_waits_until_the_database_is_reachable() -> None:
    away = UnreachableCall(9)
    assert await wait_for_database("D-1", away, PATIENT, lambda: False) == "there"
    assert away.tries == 10


async def test_a_call_waits_no_longer_than_the_lease() -> None:
    away = UnreachableCall()
    clock = asyncio.get_running_loop().time
    began = clock()
    with pytest.raises(DatabaseUnreachable):
        await asyncio.wait_for(wait_for_database("D-1", away, QUICK, lambda: False), 10)
    assert clock() - began >= QUICK.lease
    assert away.tries > 1


async def test_a_stopped_run_retries_on_a_second_connection() -> None:
    away = UnreachableCall()
    with pytest.raises(DatabaseUnreachable):
        await wait_for_database("D-1", away, PATIENT, lambda: True)
    assert away.tries == 2


async def test_a_permanent_database_error_is_not_retried(rt: Runtime, make: Factory) -> None:
    ctx = RunContext(await make.running(), rt, 60)
    with pytest.raises(DraftsmanError, match="at most 1,000 are allowed"):
        await worker_run(ctx).note_step("".join(uuid4().hex for _ in range(500)))


async def test_other_errors_are_raised_at_once() -> None:
    async def lost() -> None:
        raise LeaseLost

    with pytest.raises(LeaseLost):
        await wait_for_database("D-1", lost, PATIENT, lambda: False)
