"""Events of a job in the order of their commits: each is written under the lock of the job."""

from __future__ import annotations

from draftsman.database.database import Connection
from draftsman.forges import store as forges
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_reservations import reserve
from tests.support.races import FirstSession


async def _last(rt: Runtime, job: int) -> list[str]:
    return [event.kind for event in await rt.read_model.job_events(job)][-2:]


async def test_the_end_of_a_reservation_is_behind_an_event_that_commits_first(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    job = await reserve(rt, owner)
    async with first.doing(first.rt.job_control.pause(job, owner, "later")):
        await first.then(rt.queues.release_reservation("q", owner), conn)
    assert await _last(rt, job) == ["job_paused", "reservation_ended"]


async def test_an_event_of_a_follow_up_is_behind_an_event_that_commits_first(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    job = await make.queued()

    async def write(other: Connection) -> None:
        await forges.event(other, job, "follow_up_created", {})

    async with first.doing(first.rt.job_control.pause(job, owner, "later")):
        await first.then(rt.db.run_transaction(write), conn)
    assert await _last(rt, job) == ["job_paused", "follow_up_created"]
