"""Trees and groups of more jobs than a statement ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import DEADLINE
from tests.support.limits import check_places
from tests.support.statements import rows, run

BATCH: Final = 1000
JOBS: Final = 2 * BATCH + 100
GROUP: Final[dict[str, Any]] = {"group": {"name": "g", "kind": "parallel"}}
Start = Callable[[Runtime, Factory, Actor], Awaitable[int]]


async def _submit(rt: Runtime, owner: Actor, **fields: Any) -> None:
    requests = [invocation(type="noop", queue="q", **fields) for _ in range(JOBS)]
    await rt.submissions.submit_many(requests, owner)


async def _canceled(conn: Connection) -> int:
    ((count,),) = await rows(
        conn, "SELECT count(*) FROM draftsman.job_states WHERE status = 'canceled'"
    )
    return int(count)


async def _sweep(rt: Runtime, conn: Connection) -> int:
    """Do the postponed work as the leader does, which looks again while some is due."""
    passes = 0
    while (due := await rt.sweeps.next_due()) is not None and due <= 0:
        await rt.sweeps.run("postponed", LeaderTerm())
        passes += 1
    assert await rows(conn, "SELECT id FROM draftsman.postponed_work") == []
    assert await rows(conn, "SELECT job FROM draftsman.pending_cancels") == []
    return passes


async def test_the_dependents_of_a_failed_job_are_canceled_in_batches(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running()
    await _submit(rt, owner, after=(work.number,))
    await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    assert (await rt.read_model.job(work.number)).status is Status.FAILED
    assert await _canceled(conn) == 0, "its own end ends none of them"
    await check_places(rt)
    assert await _sweep(rt, conn) >= JOBS // BATCH
    assert await _canceled(conn) == JOBS
    await check_places(rt)


async def test_the_dependents_of_a_completed_job_are_released_in_batches(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running()
    await _submit(rt, owner, after=(work.number,))
    await rt.settlement.outcome(work, Done())
    await _sweep(rt, conn)
    ((held,),) = await rows(
        conn, "SELECT count(*) FROM draftsman.job_states WHERE hold IS NOT NULL"
    )
    assert held == 0
    await check_places(rt)


async def test_a_dependent_that_is_locked_delays_no_other(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running()
    await _submit(rt, owner, after=(work.number,))
    await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    async with rt.db.transaction() as other:
        await run(
            other, "SELECT FROM draftsman.job_states WHERE hold = 'parents' LIMIT 1 FOR UPDATE"
        )
        while await rt.sweeps.run("postponed", LeaderTerm()):
            pass
        assert await _canceled(conn) == JOBS - 1
    await run(conn, "UPDATE draftsman.postponed_work SET due_at = draftsman.now()")
    await _sweep(rt, conn)
    assert await _canceled(conn) == JOBS


async def test_a_group_that_stops_skips_its_next_jobs_at_once_and_the_others_in_batches(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="other", **GROUP)
    await _submit(rt, owner, group="g")
    await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    assert await _canceled(conn) == BATCH
    ((first,),) = await rows(
        conn,
        "SELECT count(*) FROM (SELECT status FROM draftsman.job_states WHERE queue = 'q'"
        " ORDER BY position LIMIT %s) s WHERE status = 'canceled'",
        (BATCH,),
    )
    assert first == BATCH, "those that would be claimed next"
    await check_places(rt)
    await _sweep(rt, conn)
    assert await _canceled(conn) == JOBS
    await check_places(rt)


@pytest.mark.parametrize("kind", ["tree", "group"])
async def test_a_person_cancels_a_large_tree_or_group_in_batches(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, kind: str
) -> None:
    work = await make.running(queue="other", **({} if kind == "tree" else GROUP))
    await _submit(rt, owner, **({"after": (work.number,)} if kind == "tree" else {"group": "g"}))
    if kind == "tree":
        results = await rt.job_control.cancel_tree(work.number, owner, "wrong commit")
    else:
        results = await rt.job_control.cancel_group("g", owner, "wrong commit")
    assert len(results) == JOBS + 1
    at_once = {result.number for result in results if not result.requested}
    assert await _canceled(conn) == len(at_once) <= BATCH
    await _sweep(rt, conn)
    assert await _canceled(conn) == JOBS, "the worker ends the running job"
    assert (await rt.read_model.job(work.number)).cancel_requested_at is not None
    job = await rt.read_model.job(results[-1].number)
    assert (job.cancel_requested_by, job.cancel_reason) == ("cli:root", "wrong commit")
    actors = "SELECT DISTINCT actor FROM draftsman.job_events WHERE kind = 'job_canceled'"
    assert {*await rows(conn, actors)} == {("cli:root",), ("system",)}
    await check_places(rt)


async def test_a_job_that_is_locked_delays_no_other_cancel(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    await _submit(rt, owner, **GROUP)
    await rt.job_control.cancel_group("g", owner, None)
    ((last,),) = await rows(conn, "SELECT max(job) FROM draftsman.pending_cancels")
    await run(conn, "BEGIN")
    await run(conn, "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (last,))
    async with asyncio.timeout(DEADLINE):
        await rt.sweeps.run("postponed", LeaderTerm())
    await run(conn, "COMMIT")
    assert await _canceled(conn) == JOBS - 1
    await run(conn, "UPDATE draftsman.pending_cancels SET due_at = draftsman.now()")
    await _sweep(rt, conn)
    assert await _canceled(conn) == JOBS
