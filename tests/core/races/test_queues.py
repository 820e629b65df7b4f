"""Pauses beside claims, submissions, promotions, resumes and holds of another session."""

from __future__ import annotations

import asyncio

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.queues import store as queues
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import HELD, claim
from tests.support.races import FirstSession
from tests.support.statements import run, value


async def test_a_claim_after_the_pause_takes_nothing_and_waits_for_nothing(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.queued(queue="q")
    async with first.doing(first.rt.queues.pause("q", owner, "r")) as paused:
        async with asyncio.timeout(5):
            assert [job.number for job in await claim(conn, make, "q")] == [number]
        assert not paused.done()
    later = await make.queued(queue="q")
    assert await claim(conn, make, "q") == []
    assert (await rt.read_model.why(later)).reason == "paused"


async def test_a_job_whose_submission_is_open_is_held_by_the_pause(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    request = invocation(type="noop", queue="q")
    async with first.doing(first.rt.submissions.submit(request, owner)) as submitted:
        await rt.queues.pause("q", owner, "r")
    assert (await rt.read_model.why(submitted.result().number)).reason == "paused"
    assert await claim(conn, make, "q") == []


async def test_a_job_whose_promotion_is_open_is_held_by_the_pause(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.retrying(queue="q", type="report")
    await make.set_due(number, 0)
    async with first.doing(first.rt.promotion.promote(LeaderTerm())):
        await rt.queues.pause("q", owner, "r", "report")
    assert await claim(conn, make, "q") == []
    assert (await rt.read_model.why(number)).reason == "paused"


async def test_a_drain_waits_for_a_claim_that_began_before_the_pause(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.queued(queue="q")
    claiming = first.rt.claim(make.worker, ("q",))
    async with first.doing(claiming.exchange([], types=["noop"], free=1, ahead=0)):
        drain = rt.queues.drain("q", owner, "r")
        progress = await anext(drain)
        assert (progress.running, progress.claims) == ([], 1)
        assert await queues.claiming(conn)
    progress = await anext(drain)
    assert (progress.running, progress.finished) == ([number], False)
    await drain.aclose()


async def test_a_resume_waits_for_a_hold_and_releases_its_jobs(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await rt.queues.pause("q", owner, "r", "report")
    number = await make.queued(queue="q", type="report")
    async with first.doing(
        first.rt.db.run_transaction(lambda held: queues.hold_jobs(held, LeaderTerm(), 100))
    ):
        assert await first.then(rt.queues.resume("q", owner, "report"), conn) == 1
    assert await value(conn, HELD) == 0
    assert [job.number for job in await claim(conn, make, "q")] == [number]


async def test_a_hold_leaves_a_job_that_is_being_canceled(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    """It does not wait: the transaction may stay open, and the next hold has the job."""
    number = await make.queued(queue="q", type="report")
    await run(
        conn,
        "INSERT INTO draftsman.queue_pauses (queue, type, reason, paused_by)"
        " VALUES ('q', 'report', 'r', 'a')",
    )
    async with first.doing(first.rt.job_control.cancel(number, owner)):
        assert await rt.queues.hold() == 0
        assert await value(conn, HELD) == 0
    assert await rt.queues.hold() == 0
