"""A worker outlives its database: restarts, cut connections, a server that only reads."""

from __future__ import annotations

import asyncio

import pytest
from psycopg_pool.base import AttemptWithBackoff

from draftsman.domain.job import Status
from draftsman.domain.outcome import Done, Outcome
from draftsman.handlers.context import RunContext
from draftsman.loops import ear
from draftsman.runtime import Runtime
from draftsman.store.db import Connection
from tests.core.loops.crews import (
    NOWHERE,
    Held,
    Said,
    ends,
    noop,
    reaches,
    row_of,
    run_of,
    tuned,
    working,
)
from tests.core.loops.wire import wired
from tests.factories import Factory
from tests.support.waits import background, until

S = Status


async def connected(rt: Runtime, worker: object) -> bool:
    return any(row.connected for row in await rt.inspect.workers() if row.id == worker)


async def test_without_an_ear_jobs_are_found_by_polling(rt: Runtime, make: Factory) -> None:
    held = Held()
    held.go.set()
    async with working(tuned(rt, listen_url=NOWHERE), {"noop": held}) as crew:
        for _ in range(2):
            number = await make.queued(queue="default")
            assert (await ends(rt, number)).status is S.COMPLETED
        assert not await connected(rt, crew.id)


async def test_an_ear_that_was_cut_off_listens_again(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ear, "RECONNECT", 0.02)
    held = Held()
    held.go.set()
    async with working(tuned(rt, poll=60), {"noop": held}) as crew:
        await until(lambda: connected(rt, crew.id), "the ear")
        await conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
        )
        await until(lambda: connected(rt, crew.id), "the ear again")
        number = await make.queued(queue="default")
        assert (await ends(rt, number)).status is S.COMPLETED


async def test_a_worker_whose_connections_are_all_cut_goes_on(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    held = Held()
    number = await make.queued(queue="default")
    async with working(tuned(rt), {"noop": held}):
        await held.next()
        await conn.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        held.go.set()
        assert (await ends(rt, number)).result == {"run": 1}
        later = await make.queued(queue="default")
        assert (await ends(rt, later)).status is S.COMPLETED


async def test_an_outage_is_said_once_and_its_end_too(
    rt: Runtime,
    make: Factory,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ear, "RECONNECT", 0.05)
    held, said = Held(), Said(caplog)
    number = await make.queued(queue="default")
    async with (
        wired(database_url, connect_timeout=0.05) as (wire, db),
        working(tuned(rt, db), {"noop": held}, slots=2) as crew,
    ):
        await held.next()
        wire.cut()
        await said.wait("the worker waits for the database")
        await said.wait("the heartbeat waits for the database")
        refused = wire.refused
        await until(lambda: more(wire.refused, refused + 2), "more tries")
        wire.mend()
        await said.wait("the worker has the database again")
        await said.wait("the heartbeat has the database again")
        held.go.set()
        assert (await ends(rt, number)).result == {"run": 1}
        assert await row_of(rt, crew.id) is not None
    assert len(said.lines("waits for the database")) == 2
    assert len(said.lines("has the database again")) == 2
    assert (await rt.inspect.job(number)).attempts == 0


async def more(count: int, than: int) -> bool:
    return count >= than


@pytest.mark.parametrize("fails", [False, True])
async def test_what_ended_during_an_outage_is_written_after_it(
    rt: Runtime, make: Factory, database_url: str, fails: bool
) -> None:
    over = asyncio.Event()
    held = Held()

    async def handler(ctx: RunContext) -> Outcome:
        await held(ctx)
        ctx.log("it ended")
        over.set()
        if fails:
            raise ValueError("it failed meanwhile")
        return Done({"effect": 1})

    number = await make.queued(queue="default")
    async with (
        wired(database_url, connect_timeout=0.05) as (wire, db),
        working(tuned(rt, db), {"noop": handler}),
    ):
        await held.next()
        wire.cut()
        held.go.set()
        await over.wait()
        refused = wire.refused
        await until(lambda: more(wire.refused, refused + 2), "a try to write")
        assert (await run_of(rt, number)).status == "running"
        wire.mend()
        job = await reaches(rt, number, S.RETRYING if fails else S.COMPLETED)
    assert (job.attempts, job.run_count) == (int(fails), 1)
    kept = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert kept.startswith("it ended\n")
    assert ("ValueError: it failed meanwhile" in kept) == fails


async def test_a_server_that_only_reads_is_not_asked_all_the_time(
    rt: Runtime, conn: Connection, database_url: str, database: str
) -> None:
    await conn.execute(
        f'ALTER DATABASE "{database}" SET default_transaction_read_only = on'.encode()
    )
    clock = asyncio.get_running_loop().time
    async with wired(database_url) as (wire, db):
        worker = tuned(rt, db, poll=0.1).crew({"noop": noop}).worker
        async with background(worker.run()):
            await until(lambda: more(wire.errors, 1), "a refusal")
            began, before = clock(), wire.errors
            await until(lambda: more(wire.errors, before + 4), "four more")
            assert clock() - began > 0.3


async def test_a_look_for_the_known_types_that_fails_forgets_no_other_job(
    rt: Runtime, make: Factory, conn: Connection, database_url: str
) -> None:
    """The claim brings both; the table that is asked next is locked for a while."""
    held = Held()
    held.go.set()
    await make.queued(type="strange", queue="default", priority=5)
    known = await make.queued(queue="default")
    async with (
        wired(database_url, statement_timeout=0.2) as (_, db),
        conn.transaction(),
    ):
        worker = tuned(rt, db).crew({"noop": held}, slots=2).worker
        await conn.execute("LOCK TABLE draftsman.workers IN ACCESS EXCLUSIVE MODE")
        async with background(worker.run()):
            assert (await ends(rt, known)).run_count == 1


async def test_after_a_long_outage_the_worker_does_not_wait_as_long_again(
    rt: Runtime, make: Factory, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool waits longer after each try: as if it had tried often already."""
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 0.05)
    monkeypatch.setattr(AttemptWithBackoff, "DELAY_BACKOFF", 1000)
    monkeypatch.setattr(ear, "RECONNECT", 0.2)
    async with (
        wired(database_url, pool_size=1) as (wire, db),
        working(tuned(rt, db), {"noop": noop}),
    ):
        wire.cut()
        await until(lambda: more(wire.refused, 6), "tries of the pool, and of the ear")
        wire.mend()
        number = await make.queued(queue="default")
        assert (await ends(rt, number)).status is S.COMPLETED
