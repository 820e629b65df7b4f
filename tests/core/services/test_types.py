"""Types that a worker does not handle: their jobs wait, and delay no others."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.store import claim as store
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.limits import check_places, set_limits
from tests.support.statements import rows, value

MANY = 150
"""Jobs of another type; fewer than 100 are passed by a claim."""


async def _sweep(rt: Runtime) -> int:
    return await rt.sweeps.run("types", LeaderTerm())


async def _claim(rt: Runtime, worker: UUID, free: int, *types: str) -> list[ClaimedJob]:
    return await rt.claim(worker, ("q",)).exchange([], types=types, free=free, ahead=0)


async def _submit(rt: Runtime, owner: Actor, *types: str, **fields: int) -> list[int]:
    requests = [invocation(type=type, queue="q", **fields) for type in types]
    return [job.number for job in await rt.submissions.submit_many(requests, owner)]


async def test_a_claim_passes_no_job_of_a_type_that_others_handle(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    worker = await make.worker_row(queues=["q"], types=["noop", "own"])
    other = await make.worker_row(queues=["q"], types=["noop", "odd"])
    odd = await _submit(rt, owner, *["odd"] * MANY)
    common = await _submit(rt, owner, "noop")
    own = await _submit(rt, owner, "own")
    assert await _sweep(rt) == MANY + 1
    plan = "\n".join(
        line
        for (line,) in await rows(
            conn,
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT number FROM draftsman.claimable"
            " WHERE queue = 'q' AND NOT by_type AND type = ANY ('{noop,own}')"
            " ORDER BY priority DESC, position, number LIMIT 2",
        )
    )
    assert "Rows Removed by Filter" not in plan
    assert [job.number for job in await _claim(rt, worker, 9, "noop", "own")] == common + own
    claimed = await _claim(rt, other, 9, "noop", "odd")
    assert [job.number for job in claimed] == odd[:9]


async def test_jobs_that_are_found_by_type_are_claimed_ahead_as_many_as_asked_for(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    await make.worker_row(queues=["q"], types=["noop"])
    other = await make.worker_row(queues=["q"], types=["noop", "odd"])
    odd = await _submit(rt, owner, *["odd"] * MANY)
    assert await _sweep(rt) == MANY
    claim = rt.claim(other, ("q",))
    claimed = await claim.exchange([], types=["odd"], free=1, ahead=119)
    assert [job.number for job in claimed] == odd[:120]


async def test_few_jobs_of_other_types_change_nothing(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    await make.worker_row(queues=["q"])
    await _submit(rt, owner, *["odd"] * 99)
    assert await _sweep(rt) == 0


async def test_the_order_of_the_queue_is_exact_while_jobs_are_found_by_type(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    """All the types of the queue in turn, of several priorities, and newer jobs of each."""
    types = ("one", "two", "noop")
    worker = await make.worker_row(queues=["q"], types=types)
    await make.worker_row(queues=["q"], types=["noop"])
    for priority in (0, 5, 2):
        await _submit(rt, owner, *types * 60, priority=priority)
    assert await _sweep(rt) == 3 * 2 * 60
    for priority in (2, 9):
        await _submit(rt, owner, *types, priority=priority)
    expected = [job.number for job in await rt.queues.order(1000, "q")]
    assert len(expected) == 3 * 180 + 6
    claimed = []
    while some := await _claim(rt, worker, 70, *types):
        claimed += [job.number for job in some]
    assert claimed == expected


FOUND = """
    SELECT s.number
      FROM draftsman.claimable_by_type(ARRAY['q'], %s, %s) WITH ORDINALITY AS f (location, place)
      JOIN draftsman.job_states s ON s.ctid = f.location
     ORDER BY f.place"""


@pytest.mark.parametrize("by_type", [True, False])
async def test_the_first_jobs_of_each_type_are_found_in_the_order_of_claims(
    rt: Runtime, owner: Actor, conn: Connection, *, by_type: bool
) -> None:
    """Whatever the plan, and each once; the function finds 100 more than it is asked for."""
    for kind in ("indexscan", "indexonlyscan", "bitmapscan"):
        await conn.execute(f"SET enable_{kind} = off")
    types = ["one", "two"] * 2
    first, urgent, moved, later = [
        (await _submit(rt, owner, type, priority=5 * (place == 1)))[0]
        for place, type in enumerate(types)
    ]
    await conn.execute("UPDATE draftsman.job_states SET by_type = %s", (by_type,))
    (other,) = await _submit(rt, owner, "one")
    await conn.execute("UPDATE draftsman.job_states SET by_type = true WHERE number = %s", (other,))
    place = "UPDATE draftsman.job_states SET position = 1 WHERE number = ANY (%s)"
    await conn.execute(place, ([moved],))

    async def found(most: int) -> list[int]:
        return [number for (number,) in await rows(conn, FOUND, (["one", "two"], most - 100))]

    assert await found(100) == [urgent, moved, first, later, other]
    assert await found(1) == [urgent]
    assert await found(2) == [urgent, moved]
    await conn.execute(place, ([first, urgent, moved, later, other],))
    assert await found(2) == [urgent, first]
    assert await found(3) == [urgent, first, moved]
    await conn.execute("UPDATE draftsman.job_states SET priority = 0")
    for order in ([first, urgent, moved, later, other], [other, later, moved, urgent, first]):
        for position, number in enumerate(order):
            await conn.execute(
                "UPDATE draftsman.job_states SET position = %s WHERE number = %s",
                (position, number),
            )
        assert [await found(most) for most in (1, 2, 3)] == [order[:1], order[:2], order[:3]]


async def test_a_locked_job_found_by_type_is_passed(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    worker = await make.worker_row(queues=["q"], types=["odd"])
    await make.worker_row(queues=["q"])
    odd = await _submit(rt, owner, *["odd"] * MANY)
    await _sweep(rt)
    async with conn.transaction():
        await conn.execute(
            "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE", (odd[0],)
        )
        assert [job.number for job in await _claim(rt, worker, 2, "odd")] == odd[1:3]
    assert [job.number for job in await _claim(rt, worker, 2, "odd")] == [odd[0], odd[3]]


async def test_a_paused_type_that_is_found_by_type_is_not_claimed(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    worker = await make.worker_row(queues=["q"], types=["odd"])
    await make.worker_row(queues=["q"])
    await _submit(rt, owner, *["odd"] * MANY)
    await _sweep(rt)
    await rt.queues.pause("q", owner, "r", "odd")
    assert await _claim(rt, worker, 2, "odd") == []
    await rt.queues.resume("q", owner, "odd")
    assert len(await _claim(rt, worker, 2, "odd")) == 2


async def test_a_job_without_a_worker_keeps_no_place_of_a_limit(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"a/shop": {"running": 1}})
    worker = await make.worker_row(queues=["q"])
    fields: dict[str, Any] = {"queue": "q", "repo": "https://git.example.org/a/shop"}
    stuck = await make.queued(type="odd", **fields)
    waiting = await make.queued(type="odd", **fields)
    own = await make.queued(**fields)
    assert await _claim(rt, worker, 9, "noop") == []
    while await _sweep(rt):
        pass
    await rt.sweeps.run("limits", LeaderTerm())
    (job,) = await _claim(rt, worker, 9, "noop")
    assert job.number == own
    why = await rt.read_model.why(stuck)
    assert (why.reason, "'odd'" in why.text) == ("unknown_type", True)
    await check_places(rt)
    late = await make.worker_row(queues=["q"], types=["odd"])
    await rt.settlement.outcome(job, Done())
    await _sweep(rt)
    await rt.sweeps.run("holds", LeaderTerm())
    await rt.sweeps.run("limits", LeaderTerm())
    assert [job.number for job in await _claim(rt, late, 9, "odd")] == [stuck]
    assert (await rt.read_model.why(waiting)).reason == "limit"
    assert await value(conn, "SELECT count(*) FROM draftsman.unhandled_types") == 0


async def test_waiting_types_are_named(rt: Runtime, make: Factory, owner: Actor) -> None:
    await make.worker_row(queues=["q"])
    await _submit(rt, owner, "odd", "odd", "noop", *["rare"] * MANY)
    for _ in range(2):
        (odd, rare) = await rt.queues.waiting_for_types()
        assert (odd.queue, odd.type, odd.jobs) == ("q", "odd", 2)
        assert rare.text == "no live worker of the queue 'q' handles 'rare': 150 jobs wait"
        assert await _sweep(rt) in (MANY + 2, 0)
    assert await rt.queues.unhandled_types() == [("q", "odd"), ("q", "rare")]
    (summary,) = [item for item in await rt.queues.all() if item.name == "q"]
    assert (summary.queued, [item.type for item in summary.unhandled]) == (153, ["odd", "rare"])
    assert 'draftsman_unhandled_jobs{queue="q",type="odd"} 2\n' in await rt.queues.metrics()


async def test_a_job_that_no_worker_can_run_reserves_no_queue(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    await make.worker_row(queues=["q"])
    with pytest.raises(Refused, match="cannot reserve its queue; no job was submitted"):
        await rt.reservations.submit(invocation(type="odd", queue="q"), owner)
    assert await rt.reservations.all() == []


async def test_a_claim_looks_types_up_only_while_a_job_that_it_may_take_is_found_by_type(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    """Each lookup costs time; a job keeps the mark while it runs, waits for others, and ends."""
    looked_up = (
        "SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions"
        " WHERE funcname = 'claimable_by_type'"
    )
    mark = "UPDATE draftsman.job_states SET by_type = true WHERE number = ANY (%s)"
    await conn.execute("SET track_functions = 'all'")
    counts = []
    parent = await make.running()
    held = await make.queued(queue="q", after=(parent.number,))
    waiting = await make.queued(queue="q")
    for marked in ([], [parent.number], [held], [waiting]):
        await conn.execute(mark, (marked,))
        async with conn.transaction(force_rollback=True):
            (claimed,) = await store.exchange(
                conn, [], worker=make.worker, queues=["q"], types=["noop"], free=2, ahead=0
            )
            counts.append(await value(conn, looked_up))
        assert claimed.number == waiting
    assert counts == [0, 0, 0, 1]
