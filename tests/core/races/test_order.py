"""Moves beside claims and moves of another session."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_order import order
from tests.core.queues.test_queues import claim
from tests.support.races import FirstSession


async def test_the_second_of_two_moves_waits_and_sees_the_first(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    a, b, c = [await make.queued(queue="q") for _ in range(3)]
    async with first.doing(first.rt.queues.move(b, "top", owner)):
        await first.then(rt.queues.move(c, "top", owner), conn)
    assert await order(rt) == [c, b, a]


async def test_a_move_waits_for_a_claim_and_is_refused(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    number = await make.queued(queue="q")
    await make.queued(queue="q")
    claiming = first.rt.claim(make.worker, ("q",))
    async with first.doing(claiming.exchange([], types=["noop"], free=1, ahead=0)):
        with pytest.raises(Refused, match=f"D-{number} is running"):
            await first.then(rt.queues.move(number, "bottom", owner), conn)


async def test_a_claim_passes_a_job_that_is_being_moved(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    a, b = [await make.queued(queue="q") for _ in range(2)]
    async with first.doing(first.rt.queues.move(a, "bottom", owner)):
        async with asyncio.timeout(5):
            assert [work.number for work in await claim(conn, make, free=2)] == [b]
    assert [work.number for work in await claim(conn, make)] == [a]


async def test_moves_from_many_sessions_end_in_an_order(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    jobs = [await make.queued(queue="q") for _ in range(6)]
    await asyncio.gather(
        *(rt.queues.move(n, "before", owner, jobs[0]) for n in jobs[1:] for _ in range(3))
    )
    found = await order(rt)
    assert sorted(found) == jobs
    assert found[-1] == jobs[0]
