"""A worker survives every error of the database in each of its loops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from draftsman.database import notification_listener
from draftsman.database.database import Connection, Database
from draftsman.database.notification_listener import NotificationListener
from draftsman.errors import Refused
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.people.actor import Actor
from draftsman.questions.response import Response
from draftsman.runtime import ENUMS, Runtime
from draftsman.settings.database import DatabaseSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    BlockingHandler,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.slow import slow_except
from tests.support.statements import run, value

TABLES = ("workers", "leases", "job_states", "deliveries")
"""Tables that the heartbeat, the leader, the claims and the dispatcher write."""
SETUP = """
CREATE SCHEMA trial;
CREATE SEQUENCE trial.{table}_errors;
GRANT USAGE ON SCHEMA trial TO public;
GRANT USAGE ON SEQUENCE trial.{table}_errors TO public;
CREATE FUNCTION trial.fail_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('trial.{table}_errors');
    RAISE 'a test' USING ERRCODE = '{state}';
END $$;
CREATE TRIGGER fail BEFORE INSERT OR UPDATE OR DELETE ON draftsman.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION trial.fail_{table}();
"""


@pytest.mark.parametrize("state", slow_except(["40P01"], ["40P01", "25006", "42501", "XX000"]))
async def test_a_worker_survives_an_error_in_every_loop(
    rt: Runtime, make: Factory, conn: Connection, state: str
) -> None:
    handler = BlockingHandler()
    handler.go.set()
    fast = runtime_with(rt, poll=0.05, heartbeat=0.05, lease=8, sweeps={"interval": 0.1})
    async with running_worker(fast, {"noop": handler}, leader=True) as process:
        await make.queued(queue="other")
        for table in TABLES:
            setup = SETUP.replace("CREATE SCHEMA", "CREATE SCHEMA IF NOT EXISTS")
            await run(conn, setup.format(table=table, state=state))
        for table in ("workers", "job_states"):

            async def has_failed(table: str = table) -> bool:
                return bool(await value(conn, f"SELECT is_called FROM trial.{table}_errors"))

            await until(has_failed, f"errors of {table}")
        for table in TABLES:
            await run(conn, f"DROP TRIGGER fail ON draftsman.{table}")
        assert not process.worker.stop
        number = await make.queued(queue="default")
        assert (await wait_for_end(rt, number)).status is Status.COMPLETED


async def test_a_listener_survives_an_error_that_is_no_outage(
    rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_listener, "RECONNECT", 0.02)
    listen = NotificationListener._listen
    calls = list[None]()

    async def fail_twice(self: NotificationListener) -> None:
        calls.append(None)
        if len(calls) < 3:
            raise Refused("permission denied")
        await listen(self)

    monkeypatch.setattr(NotificationListener, "_listen", fail_twice)
    handler = BlockingHandler()
    handler.go.set()
    async with running_worker(runtime_with(rt), {"noop": handler}) as process:
        await until(lambda: _holds_lock(process.listener), "the listener")
        number = await make.queued(queue="default")
        assert (await wait_for_end(rt, number)).status is Status.COMPLETED


async def _holds_lock(listener: NotificationListener) -> bool:
    return listener.lock_held


async def test_a_process_with_a_single_pooled_connection_does_all_its_work(
    rt: Runtime, owner: Actor, database_url: str, tmp_path: Path
) -> None:
    """Worker, leader, questions and deliveries wait for each other, and never for themselves."""

    async def handler(ctx: RunContext) -> Outcome:
        answer = await ctx.ask("pick", "Which?", choices=["a", "b"])
        await ctx.step("note", lambda _: asyncio.sleep(0, "noted"))
        return Done({"picked": answer.value})

    db = Database(database_url, DatabaseSettings(pool_size=1, connect_timeout=5), enums=ENUMS)
    await db.open()
    single = runtime_with(rt, db, sweeps={"interval": 0.1}, data_dir=tmp_path)
    async with running_worker(single, {"noop": handler}, slots=5, leader=True):
        requests = [Invocation(type="noop", notify=("log",)) for _ in range(5)]
        jobs = await single.submissions.submit_many(requests, owner)

        async def finish(number: int) -> object:
            await wait_for_status(single, number, Status.WAITING_FOR_INPUT)
            response = Response(source_event_id=str(number), text="b")
            await single.questions.answer(number, 1, response, owner)
            return (await wait_for_end(single, number)).result

        results = await asyncio.gather(*(finish(job.number) for job in jobs))
        assert results == [{"picked": "b"}] * 5
    await db.close()
