"""Reservations beside claims, heartbeats, ends of jobs and other reservations."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.core.queues.test_reservations import beat, claimed, ends, reserve, shorten
from tests.support.clock import Clock
from tests.support.races import FirstSession
from tests.support.statements import value

REQUEST = invocation(type="noop", queue="q")


async def test_of_two_reservations_the_second_waits_and_is_refused(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(first.rt.reservations.submit(REQUEST, owner)) as reserved:
        with pytest.raises(Refused, match="reserved by"):
            await first.then(rt.reservations.submit(REQUEST, owner), conn)
    job, reservation = reserved.result()
    assert reservation is not None
    assert await value(conn, "SELECT array_agg(number) FROM draftsman.job_requests") == [job.number]


async def test_a_claim_waits_for_no_reservation_and_follows_its_commit(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    earlier = await make.queued(queue="q")
    later = await make.queued(queue="q", priority=-1)
    async with first.doing(first.rt.reservations.submit(REQUEST, owner)) as reserved:
        async with asyncio.timeout(5):
            assert await claim_single(conn, make) == [earlier]
        assert not reserved.done()
    assert await claimed(conn, make) == [reserved.result()[0].number]
    assert (await rt.read_model.why(later)).reason == "reserved"


async def test_a_reservation_does_not_wait_for_a_claim(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    earlier = await make.queued(queue="q")
    claiming = first.rt.claim(make.worker, ("q",))
    async with first.doing(claiming.exchange([], types=["noop"], free=1, ahead=0)):
        async with asyncio.timeout(5):
            job = await reserve(rt, owner)
    assert (await rt.read_model.job(earlier)).status is Status.RUNNING
    assert await claimed(conn, make) == [job]


async def test_a_claim_during_the_end_of_the_job_takes_nothing(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    later = await make.queued(queue="q")
    work = await make.running(number=await reserve(rt, owner))
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        async with asyncio.timeout(5):
            assert await claimed(conn, make) == []
    assert await claimed(conn, make) == [later]


async def test_an_expiry_leaves_a_reservation_that_is_being_renewed(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, clock: Clock
) -> None:
    job = await reserve(rt, owner)
    work = await make.running(number=job)
    await shorten(conn, 60)
    async with first.doing(beat(first.rt, make, work)):
        await clock.forward(61)
        assert await rt.sweeps.run("holds", LeaderTerm()) == 0
    assert [item.job for item in await rt.reservations.all()] == [job]


async def test_a_renewal_skips_a_reservation_that_expires(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, clock: Clock
) -> None:
    job = await reserve(rt, owner)
    work = await make.running(number=job)
    await shorten(conn, 60)
    await clock.forward(61)
    await first.reopen()
    async with first.doing(first.rt.sweeps.run("holds", LeaderTerm())):
        async with asyncio.timeout(5):
            await beat(rt, make, work)
    assert await rt.reservations.all() == []
    assert await ends(rt, job) == ["expired"]


async def test_a_reservation_waits_for_the_renewal_of_another_and_is_refused(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, clock: Clock
) -> None:
    job = await reserve(rt, owner)
    work = await make.running(number=job)
    await shorten(conn, 60)
    async with first.doing(beat(first.rt, make, work)):
        await clock.forward(61)
        with pytest.raises(Refused, match=f"for D-{job}"):
            await first.then(rt.reservations.submit(REQUEST, owner), conn)
    assert await ends(rt, job) == []


async def test_the_end_of_a_job_leaves_the_reservation_that_replaced_its_own(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, clock: Clock
) -> None:
    work = await make.running(number=await reserve(rt, owner))
    await shorten(conn, 60)
    await clock.forward(61)
    await first.reopen()
    async with first.doing(first.rt.reservations.submit(REQUEST, owner)) as replaced:
        assert await first.then(rt.settlement.outcome(work, Done()), conn) is Status.COMPLETED
    job, _ = replaced.result()
    assert [item.job for item in await rt.reservations.all()] == [job.number]
    assert await ends(rt, work.number) == ["expired"]


async def test_a_release_during_the_end_of_the_job_ends_its_reservation_once(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(number=await reserve(rt, owner))
    async with first.doing(first.rt.queues.release_reservation("q", owner)):
        assert await first.then(rt.settlement.outcome(work, Done()), conn) is Status.COMPLETED
    assert await ends(rt, work.number) == ["released"]


async def claim_single(conn: Connection, make: Factory) -> list[int]:
    """Claim a single job of the queue `q`."""
    return [job.number for job in await claim(conn, make, free=1)]
