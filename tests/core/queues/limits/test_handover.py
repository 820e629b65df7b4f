"""Workers with limits: the exchange claims the jobs that get the places of the runs it settles."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.jobs.runs.service.claim import Claim
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.limits import check_places, placed, set_limits, waiting
from tests.support.statements import rows, run


async def _exchange(claim: Claim, done: list[ClaimedJob]) -> list[int]:
    jobs = await claim.exchange([(job.lease, {}) for job in done], types=["noop"], free=2, ahead=0)
    done[:] = [job for job in jobs if job.status is Status.RUNNING]
    return [job.number for job in done]


@pytest.mark.parametrize("limited", [False, True])
async def test_a_worker_starts_the_next_job_with_the_end_of_the_last(
    rt: Runtime, make: Factory, conn: Connection, limited: bool
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    numbers = [await make.queued(queue="q") for _ in range(3)]
    claim = Claim(rt.db, make.worker, ("q",), limited=limited)
    done = list[ClaimedJob]()
    for number in numbers:
        assert await _exchange(claim, done) == [number]
    assert await _exchange(claim, done) == []
    assert (await rt.read_model.job(numbers[2])).status is Status.COMPLETED
    events = await rows(
        conn, "SELECT kind FROM draftsman.job_events WHERE job = %s ORDER BY id", (numbers[2],)
    )
    assert [kind for (kind,) in events] == ["job_created", "job_started", "job_completed"]
    await check_places(rt)


async def test_a_worker_starts_no_more_jobs_than_it_has_slots(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    """A job that may be claimed comes first, and the job that gets the place waits for a slot."""
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    running, waits = [await make.queued(queue="q") for _ in range(2)]
    claim = Claim(rt.db, make.worker, ("q", "other"))
    done = list[ClaimedJob]()
    assert await _exchange(claim, done) == [running]
    others = [await make.queued(queue="other") for _ in range(2)]
    assert await _exchange(claim, done) == others
    assert await placed(conn) == [waits]
    await check_places(rt)


async def test_places_go_to_the_first_jobs_of_each_limit(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}})
    shop, mail = [f"https://git.example.org/x/{name}" for name in ("shop", "mail")]
    numbers = [await make.queued(queue="q", repo=repo) for repo in (shop, mail) * 2]
    first = await make.queued(queue="q", repo=shop)
    await rt.queues.prioritize(first, 5, make.owner)
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert sorted(await _exchange(claim, done)) == sorted(await placed(conn))
    while await _exchange(claim, done):
        assert len(await placed(conn)) == len(done)
    assert {(await rt.read_model.job(number)).status for number in [*numbers, first]} == {
        Status.COMPLETED
    }


async def test_places_are_handed_over_in_the_order_of_claims_but_not_past_another_type(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 3}})
    claim = Claim(rt.db, make.worker, ("q",))

    async def exchange(done: list[ClaimedJob]) -> list[ClaimedJob]:
        runs = [(job.lease, dict[str, Any]()) for job in done]
        jobs = await claim.exchange(runs, types=["noop"], free=3, ahead=0)
        return [job for job in jobs if job.status is Status.RUNNING]

    for _ in range(3):
        await make.queued(queue="q")
    running = await exchange([])
    low, high, middle, later = [await make.queued(queue="q", priority=p) for p in (0, 5, 1, 0)]
    running = await exchange(running)
    assert [job.number for job in running] == [high, middle, low]
    report = await make.queued(queue="q", type="report", priority=9)
    assert await exchange(running) == []
    assert await placed(conn) == [later, report]


async def test_an_older_job_gets_its_place_before_a_job_of_another_type_with_its_position(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 2}})
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    running = [await make.queued(queue="q") for _ in range(2)]
    assert await _exchange(claim, done) == running
    older = await make.queued(queue="q")
    await make.queued(queue="q", type="report")
    await run(conn, "UPDATE draftsman.job_states SET position = 1 WHERE status = 'queued'")
    assert await _exchange(claim, done) == [older]


async def test_the_older_of_two_jobs_with_the_same_position_gets_the_only_place(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    running = await make.queued(queue="q")
    assert await _exchange(claim, done) == [running]
    older, _ = [await make.queued(queue="q") for _ in range(2)]
    await run(conn, "UPDATE draftsman.job_states SET position = 1 WHERE status = 'queued'")
    assert await _exchange(claim, done) == [older]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (("r", 9, 1), ("q", 0, 5), 1),
        (("q", 0, 5), ("r", 9, 1), 0),
        (("q", 0, 1), ("q", 5, 9), 1),
        (("q", 5, 9), ("q", 0, 1), 0),
        (("q", 0, 7), ("q", 0, 3), 1),
        (("q", 0, 3), ("q", 0, 7), 0),
        (("q", 0, 3), ("q", 0, 3), 0),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
async def test_of_the_places_of_several_limits_a_slot_takes_the_first_in_the_order_of_claims(
    rt: Runtime,
    make: Factory,
    conn: Connection,
    first: tuple[str, int, int],
    second: tuple[str, int, int],
    winner: int,
    turned: bool,
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}})
    repos = [f"https://git.example.org/x/{name}" for name in ("shop", "mail")]
    if turned:
        repos.reverse()
    for repo in repos:
        await make.queued(queue="q", repo=repo)
    claim = Claim(rt.db, make.worker, ("q", "r"))
    running = await claim.exchange([], types=["noop"], free=2, ahead=0)
    waits = []
    for repo, (queue, priority, position) in zip(repos, (first, second), strict=True):
        number = await make.queued(queue=queue, repo=repo, priority=priority)
        move = "UPDATE draftsman.job_states SET position = %s WHERE number = %s"
        await run(conn, move, (position, number))
        waits.append(number)
    jobs = await claim.exchange(
        [(job.lease, {}) for job in running], types=["noop"], free=1, ahead=0
    )
    started = [job.number for job in jobs if job.status is Status.RUNNING]
    assert started == [waits[winner]]


async def test_a_paused_job_is_handed_no_place(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    _, paused = [await make.queued(queue="q") for _ in range(2)]
    await _exchange(claim, done)
    pause = "INSERT INTO draftsman.job_pauses (job, reason, paused_by) VALUES (%s, 'wait', 'anna')"
    await run(conn, pause, (paused,))
    assert await _exchange(claim, done) == []


async def test_a_place_goes_to_the_first_job_also_if_another_worker_serves_its_queue(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, all={"running": 1})
    await make.queued(queue="q")
    first = await make.queued(queue="other")
    second = await make.queued(queue="q")
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert len(await _exchange(claim, done)) == 1
    assert await _exchange(claim, done) == []
    assert await placed(conn) == [first]
    assert list(await waiting(conn)) == [second]


async def test_a_job_with_two_limits_is_claimed_in_a_second_step(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, all={"running": 9}, queue={"q": {"running": 1}})
    numbers = [await make.queued(queue="q") for _ in range(5)]
    claim = Claim(rt.db, make.worker, ("q",), limited=True)
    done = list[ClaimedJob]()
    assert await _exchange(claim, done) == [numbers[0]]
    assert await _exchange(claim, done) == []  # its snapshot is older than the place
    assert await _exchange(claim, done) == [numbers[1]]
    for number in numbers[2:]:  # settled and claimed in the same transaction
        assert await _exchange(claim, done) == [number]
    assert await _exchange(claim, done) == []
    await check_places(rt)


async def test_a_locked_run_and_a_removed_limit_leave_claims_in_one_statement(
    rt: Runtime, make: Factory, conn: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("draftsman.jobs.runs.service.claim.IN_TWO_STEPS", 1)
    await set_limits(rt, conn, queue={"q": {"running": 2}})
    for _ in range(20):
        await make.queued(queue="q")
    claim = Claim(rt.db, make.worker, ("q",), limited=True)
    done = list[ClaimedJob]()
    await _exchange(claim, done)
    locked = done[0]
    async with conn.transaction():
        await conn.execute(
            "SELECT FROM draftsman.job_states WHERE number = %s FOR NO KEY UPDATE", (locked.number,)
        )
        assert len(await _exchange(claim, done)) == 1  # the locked run keeps its place
    done.append(locked)
    assert await _is_handed_over(conn, claim, done)

    await set_limits(rt, conn, all={"running": 9}, queue={"q": {"running": 2}})
    assert await _exchange(claim, done) == []
    await set_limits(rt, conn, queue={"q": {"running": 2}})
    await _exchange(claim, done)
    assert not await _is_handed_over(conn, claim, done)
    assert await _is_handed_over(conn, claim, done)


async def _is_handed_over(conn: Connection, claim: Claim, done: list[ClaimedJob]) -> bool:
    """Return whether two jobs start with the end of two others without a change of their bucket."""
    query = "SELECT ctid::text FROM draftsman.limit_buckets WHERE name = 'queue:q'"
    before = await rows(conn, query)
    assert len(await _exchange(claim, done)) == 2
    return await rows(conn, query) == before


async def test_a_place_of_a_limit_with_a_rate_is_not_handed_over(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1, "rate": "1/1h"}})
    numbers = [await make.queued(queue="q") for _ in range(2)]
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert await _exchange(claim, done) == numbers[:1]
    assert await _exchange(claim, done) == []
    assert await waiting(conn) == {numbers[1]: "queue:q"}
    await check_places(rt)


async def test_places_above_a_lowered_limit_are_not_handed_over(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 2}})
    numbers = [await make.queued(queue="q") for _ in range(4)]
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert await _exchange(claim, done) == numbers[:2]
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    last = done.pop()
    assert await _exchange(claim, done) == []
    done.append(last)
    assert await _exchange(claim, done) == [numbers[2]]
    await check_places(rt)


async def test_a_place_goes_to_a_job_that_the_end_of_the_last_run_releases(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    """The job waited for the key of that run; it precedes the jobs that wait for places."""
    await set_limits(rt, conn, queue={"q": {"running": 1}})
    await make.queued(queue="q", concurrency_key="k")
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert len(await _exchange(claim, done)) == 1
    later = await make.queued(queue="q")
    urgent = await make.queued(queue="q", concurrency_key="k", priority=9)
    assert await _exchange(claim, done) == []
    assert await placed(conn) == [urgent]
    assert await _exchange(claim, done) == [urgent]
    assert await _exchange(claim, done) == []
    assert await _exchange(claim, done) == [later]


async def test_a_place_is_not_handed_to_a_job_of_a_paused_type(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, all={"running": 1})
    await make.queued(queue="q")
    held = await make.queued(queue="q")
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert len(await _exchange(claim, done)) == 1
    await rt.queues.pause("q", make.owner, "r", type="noop")
    assert await _exchange(claim, done) == []
    assert await waiting(conn) == {held: "pause"}


async def test_a_place_is_not_handed_to_a_job_of_a_reserved_queue(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}})
    shop = "https://git.example.org/x/shop"
    await make.queued(queue="q", repo=shop)
    held = await make.queued(queue="q", repo=shop)
    claim = Claim(rt.db, make.worker, ("q",))
    done = list[ClaimedJob]()
    assert len(await _exchange(claim, done)) == 1
    job, _ = await rt.reservations.submit(invocation(type="noop", queue="q"), make.owner)
    assert await _exchange(claim, done) == [job.number]
    assert (await rt.read_model.job(held)).status is Status.QUEUED
