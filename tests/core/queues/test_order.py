"""The order of a queue: move and prioritize, as the claim takes the jobs."""

from __future__ import annotations

import random

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound, NotPermitted, Refused, UsageError
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.queues.service.queues import Place
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.queues.test_concurrency_keys import KEY, holders
from tests.core.queues.test_queues import claim
from tests.support.statements import rows, run, value

VERSIONS = "SELECT number, xmin::text FROM draftsman.job_states ORDER BY number"


async def order(rt: Runtime, limit: int = 1000) -> list[int]:
    """Return the jobs in the order in which they are listed."""
    return [job.number for job in await rt.queues.order(limit)]


async def test_each_place_writes_one_row(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    a, b, c, d = [await make.queued(queue="q") for _ in range(4)]
    moves: list[tuple[int, Place, int | None, list[int]]] = [
        (c, "top", None, [c, a, b, d]),
        (c, "before", d, [a, b, c, d]),
        (a, "after", b, [b, a, c, d]),
        (b, "bottom", None, [a, c, d, b]),
        (d, "after", b, [a, c, b, d]),
        (a, "top", None, [a, c, b, d]),
        (d, "bottom", None, [a, c, b, d]),
    ]
    for job, place, anchor, expected in moves:
        before = dict(await rows(conn, VERSIONS))
        await rt.queues.move(job, place, owner, anchor)
        assert await order(rt) == expected
        written = {n for n, version in await rows(conn, VERSIONS) if before[n] != version}
        assert written <= {job}
    later = await make.queued(queue="q")
    assert [work.number for work in await claim(conn, make)] == [a, c, b, d, later]


async def test_a_moved_job_takes_the_priority_of_its_neighbor(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    low, normal, high = [await make.queued(queue="q", priority=n) for n in (-5, 0, 5)]
    assert await order(rt) == [high, normal, low]
    await rt.queues.move(low, "before", owner, high)
    assert await order(rt) == [low, high, normal]
    await rt.queues.move(high, "bottom", owner)
    assert await order(rt) == [low, normal, high]
    priorities = [(await rt.read_model.job(number)).priority for number in (low, normal, high)]
    assert priorities == [5, 0, 0]
    (event,) = [e for e in await rt.read_model.job_events(low) if e.kind == "job_moved"]
    assert event.payload == {"place": "before", "anchor": high, "priority": 5, "from": -5}
    assert event.actor == owner.name


@pytest.mark.parametrize("place", ["before", "after"])
async def test_a_gap_that_runs_out_is_spread_without_an_error(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, place: Place
) -> None:
    jobs = [await make.queued(queue="q") for _ in range(30)]
    anchor = jobs[3]
    expected = list(jobs)
    for number in [*jobs[10:], *jobs[10:], jobs[0], jobs[29]]:
        await rt.queues.move(number, place, owner, anchor)
        expected.remove(number)
        expected.insert(expected.index(anchor) + (place == "after"), number)
        assert await order(rt) == expected
    later = await make.queued(queue="q")
    assert await order(rt) == [*expected, later]
    positions = "SELECT count(DISTINCT position) FROM draftsman.job_states"
    assert await value(conn, positions) == len(jobs) + 1


async def test_jobs_with_the_same_position_can_be_moved_between(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    jobs = [await make.queued(queue="q") for _ in range(40)]
    await run(conn, "UPDATE draftsman.job_states SET position = 100")
    await rt.queues.move(jobs[39], "before", owner, jobs[20])
    assert await order(rt) == [*jobs[:20], jobs[39], *jobs[20:39]]


async def test_random_moves_keep_the_order_of_a_list(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    chance = random.Random(7)
    expected = [await make.queued(queue="q") for _ in range(8)]
    for _ in range(60):
        number, anchor = chance.sample(expected, 2)
        place: Place = chance.choice(("before", "after"))
        await rt.queues.move(number, place, owner, anchor)
        expected.remove(number)
        expected.insert(expected.index(anchor) + (place == "after"), number)
    assert await order(rt) == expected


async def test_a_place_is_kept_when_a_neighbor_gets_the_same_priority(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    a, b, c, d = [await make.queued(queue="q", priority=n) for n in (0, 5, 0, 0)]
    await rt.queues.move(d, "before", owner, c)
    await rt.queues.prioritize(b, 0, owner)
    assert await order(rt) == [a, b, d, c]


async def test_only_queued_jobs_of_one_queue_are_moved(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    work = await make.running(queue="q")
    scheduled = await make.scheduled(queue="q")
    number = await make.queued(queue="q")
    other = await make.queued(queue="other")
    with pytest.raises(Refused, match=f"{work.name} is running; only queued jobs have a place"):
        await rt.queues.move(work.number, "top", owner)
    with pytest.raises(Refused, match=f"D-{scheduled} is scheduled; only queued jobs"):
        await rt.queues.move(number, "after", owner, scheduled)
    with pytest.raises(Refused, match=f"D-{other} is in another queue than D-{number}"):
        await rt.queues.move(number, "before", owner, other)
    with pytest.raises(UsageError, match=f"D-{number} cannot be moved before itself"):
        await rt.queues.move(number, "before", owner, number)
    with pytest.raises(NotFound, match="there is no job D-999"):
        await rt.queues.move(number, "before", owner, 999)
    with pytest.raises(NotFound, match="there is no job D-999"):
        await rt.queues.move(999, "top", owner)


async def test_a_priority_is_changed_until_the_job_is_claimed(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    first = await make.queued(queue="q")
    second = await make.queued(queue="q")
    scheduled = await make.scheduled(queue="q")
    work = await make.running(queue="other")
    await rt.queues.prioritize(second, 5, owner)
    assert await order(rt) == [second, first]
    await rt.queues.prioritize(scheduled, 9, owner)
    assert (await rt.read_model.job(scheduled)).priority == 9
    await rt.queues.prioritize(second, 5, owner)
    events = [e.payload for e in await rt.read_model.job_events(second) if e.to_status is None]
    assert events == [{"priority": 5, "from": 0}]
    with pytest.raises(Refused, match="is running; its priority has no effect any more"):
        await rt.queues.prioritize(work.number, 5, owner)
    with pytest.raises(UsageError, match="priority 1001: allowed are -1000 to 1000"):
        await rt.queues.prioritize(first, 1001, owner)
    with pytest.raises(NotFound):
        await rt.queues.prioritize(999, 1, owner)


async def test_only_operators_change_the_order_also_of_own_jobs(
    rt: Runtime, make: Factory, people: People
) -> None:
    anna = people.on(Source.CLI, "anna")
    number = await make.queued(queue="q", actor=anna)
    with pytest.raises(NotPermitted, match="may not change the order of jobs"):
        await rt.queues.move(number, "top", anna)
    with pytest.raises(NotPermitted, match="may not change the order of jobs"):
        await rt.queues.prioritize(number, 5, anna)


async def test_a_move_gives_a_concurrency_key_to_the_job_in_front(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    first, second, third = [await make.queued(**KEY) for _ in range(3)]
    await rt.queues.move(third, "top", owner)
    assert await holders(conn) == [third]
    await rt.queues.prioritize(second, 3, owner)
    assert await holders(conn) == [second]
    assert (await rt.read_model.job(first)).status is Status.QUEUED


async def test_the_listed_order_leaves_out_what_the_claim_leaves_out(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    await make.queued(queue="paused")
    await rt.queues.pause("paused", owner, "r")
    holder = await make.queued(**KEY)
    await make.queued(**KEY)
    await make.queued(queue="q", type="report")
    await rt.queues.pause("q", owner, "r", "report")
    assert await order(rt) == [holder]
    assert await order(rt, 0) == []
