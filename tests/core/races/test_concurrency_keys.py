"""Submissions, claims, ends and cancels of jobs of a concurrency key in two sessions."""

from __future__ import annotations

import asyncio

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.queues import store as queues
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_concurrency_keys import KEY, holders
from tests.core.queues.test_queues import claim
from tests.support.races import FirstSession
from tests.support.statements import run

REQUEST = invocation(type="noop", **KEY)
URGENT = invocation(type="noop", **KEY, priority=5)


async def test_the_second_of_two_submissions_waits_and_is_held(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(first.rt.submissions.submit(REQUEST, owner)) as one:
        two = await first.then(rt.submissions.submit(REQUEST, owner), conn)
    assert await holders(conn) == [one.result().number]
    assert (await rt.read_model.why(two.number)).reason == "key"


async def test_a_submission_waits_for_the_end_of_the_holder_and_takes_its_key(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(**KEY)
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        new = await first.then(rt.submissions.submit(REQUEST, owner), conn)
    assert await holders(conn) == [new.number]


async def test_the_end_of_the_holder_waits_for_a_submission_and_releases_its_job(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(**KEY)
    async with first.doing(first.rt.submissions.submit(REQUEST, owner)) as submitted:
        status = await first.then(rt.settlement.outcome(work, Done()), conn)
    assert status is Status.COMPLETED
    assert await holders(conn) == [submitted.result().number]


async def test_a_claim_in_a_batch_releases_the_next_job_like_a_single_end(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(**KEY)
    settling = rt.claim(make.worker, ("q",))
    async with first.doing(first.rt.submissions.submit(REQUEST, owner)) as submitted:
        await first.then(
            settling.exchange([(work.lease, {})], types=["noop"], free=0, ahead=0), conn
        )
    assert await holders(conn) == [submitted.result().number]


async def test_a_claimed_holder_is_not_overtaken_by_an_urgent_job(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.queued(**KEY)
    claiming = first.rt.claim(make.worker, ("q",))
    async with first.doing(claiming.exchange([], types=["noop"], free=1, ahead=0)):
        async with asyncio.timeout(5):
            urgent = await rt.submissions.submit(URGENT, owner)
    assert await holders(conn) == [number]
    assert (await rt.read_model.why(urgent.number)).reason == "key"


async def test_a_holder_that_is_being_overtaken_is_not_claimed(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await make.queued(**KEY)
    async with first.doing(first.rt.submissions.submit(URGENT, owner)) as urgent:
        async with asyncio.timeout(5):
            assert await claim(conn, make) == []
    assert [work.number for work in await claim(conn, make)] == [urgent.result().number]


async def test_a_cancel_of_the_next_job_does_not_block_the_end_of_the_holder(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(**KEY)
    canceled = await make.queued(**KEY)
    last = await make.queued(**KEY)
    async with first.doing(first.rt.job_control.cancel(canceled, owner)):
        ended = await first.then(rt.settlement.outcome(work, Done()), conn)
    assert ended is Status.COMPLETED
    assert await holders(conn) == [last]


async def test_many_submissions_and_ends_at_once_leave_a_single_holder(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(**KEY)
    batches = [[REQUEST, URGENT, invocation(type="noop", queue="q", concurrency_key="b")]] * 8
    await asyncio.gather(
        rt.settlement.outcome(work, Done()),
        *(
            rt.submissions.submit_many(batch[:: 1 if n % 2 else -1], owner)
            for n, batch in enumerate(batches)
        ),
    )
    done = 0
    while works := await claim(conn, make):
        assert len({(await rt.read_model.job(w.number)).concurrency_key for w in works}) == len(
            works
        )
        for work in works:
            await rt.settlement.outcome(work, Done())
            done += 1
    assert done == 24


async def test_keys_in_an_open_transaction_keep_no_other_waiting(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    numbers = [await make.queued(concurrency_key=key) for key in ("a", "b")]
    await run(conn, "UPDATE draftsman.job_states SET hold = 'key'")
    await conn.execute("BEGIN")
    await conn.execute("SELECT draftsman.lock_keys('{a}')")
    assert await rt.db.run_transaction(lambda other: queues.assign(other, LeaderTerm(), 1)) == 1
    assert await holders(conn) == [numbers[1]]
    await conn.execute("COMMIT")
    assert await rt.sweeps.run("holds", LeaderTerm()) == 1
