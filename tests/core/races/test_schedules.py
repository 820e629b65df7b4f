"""Two leaders, and people beside a leader: an occurrence has one outcome and at most one job."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Conflict, NotFound
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.schedules import store as schedules
from draftsman.schedules.schedule import FireStatus, Overlap, ScheduleSpec
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.races import FirstSession, hold_commits
from tests.support.statements import UNIQUE, refused

REQUEST = {"type": "http_request", "payload": {"url": "https://example.org/"}}


def _spec(name: str = "hourly", overlap: Overlap = Overlap.SKIP) -> ScheduleSpec:
    return ScheduleSpec(name, "@hourly", request=REQUEST, overlap=overlap)


async def _fire(rt: Runtime) -> int:
    return await rt.sweeps.run("schedules", LeaderTerm())


async def test_a_second_leader_skips_the_schedules_of_the_first(
    rt: Runtime, people: People, clock: Clock
) -> None:
    await clock.past_the_hour()
    await rt.schedules.add(_spec(), people.anna)
    await clock.forward(3600)
    async with hold_commits(rt) as first, first.doing(_fire(first.rt)) as fired:
        async with asyncio.timeout(5):
            assert await _fire(rt) == 0
    assert fired.result() == 1
    assert await _fire(rt) == 0
    [fire] = await rt.schedules.history()
    assert (fire.status, fire.job) == (FireStatus.FIRED, 1)
    assert len(await rt.read_model.jobs()) == 1


async def test_concurrent_leaders_fire_each_occurrence_once(
    rt: Runtime, people: People, clock: Clock
) -> None:
    await clock.past_the_hour()
    for number in range(30):
        await rt.schedules.add(_spec(f"s{number}"), people.anna)
    await clock.forward(3600)
    async with asyncio.timeout(30):
        await asyncio.gather(*(_fire(rt) for _ in range(4)))
    fires = await rt.schedules.history(limit=100)
    assert len(fires) == len({fire.job for fire in fires}) == 30
    assert len(await rt.read_model.jobs(limit=100)) == 30


async def test_two_sessions_cannot_record_an_occurrence_twice(
    rt: Runtime, first: FirstSession, people: People, conn: Connection
) -> None:
    schedule = await rt.schedules.add(_spec(), people.anna)
    assert schedule.due_at is not None
    outcome = schedules.Outcome(schedule.id, schedule.due_at, FireStatus.SKIPPED, None, "test")

    async def record(session: Runtime) -> int:
        async with session.db.connection() as own:
            return await schedules.record(own, [outcome])

    async with first.doing(record(first.rt)) as recorded, refused(UNIQUE, "schedule_fires_pkey"):
        await first.then(_raised(record(rt)), conn)
    assert recorded.result() == 1


async def _raised(work: object) -> None:
    """Raise the error of the database instead of its translation."""
    try:
        await work  # type: ignore[misc]
    except Exception as error:
        raise error.__cause__ or error.__context__ or error from None


async def test_a_pause_waits_for_a_leader_that_fires(
    rt: Runtime, first: FirstSession, people: People, clock: Clock, conn: Connection
) -> None:
    await rt.schedules.add(_spec(), people.anna)
    await clock.forward(3600)
    await first.reopen()
    async with first.doing(_fire(first.rt)) as fired:
        paused = await first.then(rt.schedules.pause("hourly", people.anna), conn)
    assert fired.result() == 1
    assert (paused.last_status, paused.paused_by) == (FireStatus.FIRED, "anna")
    await clock.forward(3600)
    assert await _fire(rt) == 0


async def test_a_leader_skips_a_schedule_that_is_being_paused(
    rt: Runtime, first: FirstSession, people: People, clock: Clock
) -> None:
    await rt.schedules.add(_spec(), people.anna)
    await clock.forward(3600)
    await first.reopen()
    async with first.doing(first.rt.schedules.pause("hourly", people.anna)):
        assert await _fire(rt) == 0
    assert await _fire(rt) == 0
    assert await rt.schedules.history() == []


async def test_a_removal_waits_for_a_leader_that_fires(
    rt: Runtime, first: FirstSession, people: People, clock: Clock, conn: Connection
) -> None:
    await rt.schedules.add(_spec(), people.anna)
    await clock.forward(3600)
    await first.reopen()
    async with first.doing(_fire(first.rt)):
        await first.then(rt.schedules.remove("hourly", people.anna), conn)
    with pytest.raises(NotFound):
        await rt.schedules.get("hourly")
    assert (await rt.read_model.job(1)).source == "schedule"


async def test_the_second_schedule_of_a_name_waits_and_is_refused(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    adding = first.rt.db.run_transaction(lambda c: schedules.add(c, _spec(), "anna", None))
    async with first.doing(adding):
        with pytest.raises(Conflict, match="schedule hourly exists"):
            await first.then(rt.schedules.add(_spec(), owner), conn)
