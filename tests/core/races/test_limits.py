"""Places of limits in two sessions: submissions, ends, cancels, moves and pauses."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.service.claim import Claim
from draftsman.jobs.runs.store.claim import exchange
from draftsman.people.actor import Actor
from draftsman.queues import store as limits
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, until, wait_blocked
from tests.support.limits import check_places, placed, set_limits, waiting
from tests.support.races import FirstSession
from tests.support.statements import rows, run

REQUEST = invocation(type="noop", queue="q")


@pytest.fixture(autouse=True)
async def _one_place(rt: Runtime, conn: Connection) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 1}})


async def test_the_second_of_two_submissions_waits_and_has_no_place(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(first.rt.submissions.submit(REQUEST, owner)) as one:
        two = await first.then(rt.submissions.submit(REQUEST, owner), conn)
    assert await placed(conn) == [one.result().number]
    assert (await rt.read_model.why(two.number)).reason == "limit"


async def test_a_submission_waits_for_the_end_of_a_run_and_gets_its_place(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        new = await first.then(rt.submissions.submit(REQUEST, owner), conn)
    assert await placed(conn) == [new.number]


async def test_the_end_of_a_run_waits_for_a_submission_and_gives_it_its_place(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    async with first.doing(first.rt.submissions.submit(REQUEST, owner)) as submitted:
        await first.then(rt.settlement.outcome(work, Done()), conn)
    assert await placed(conn) == [submitted.result().number]


async def test_a_job_that_is_being_canceled_does_not_get_the_place(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    canceled, later = [await make.queued(queue="q") for _ in range(2)]
    async with first.doing(first.rt.job_control.cancel(canceled, owner)):
        async with asyncio.timeout(5):
            await rt.settlement.outcome(work, Done())
    assert await placed(conn) == [later]


async def test_a_job_that_is_being_moved_gets_a_place_by_its_move(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    moved = await make.queued(queue="q")
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        assert await waiting(conn) == {moved: "queue:q"}
    await rt.job_control.cancel(moved, owner)
    work = await make.running(queue="q")
    moved = await make.queued(queue="q")
    async with first.doing(first.rt.queues.prioritize(moved, 5, owner)):
        await first.then(rt.settlement.outcome(work, Done()), conn)
    assert await placed(conn) == [moved]


async def test_ends_of_runs_with_common_buckets_do_not_deadlock(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    each = {"*": {"running": 1}}
    await set_limits(rt, conn, queue=each, repo=each, type={"*": {"running": 2}})
    repo = "https://git.example.org/x/"
    works = [await make.running(queue=f"q{name}", repo=repo + name) for name in "ab"]
    # each waits for a bucket of the other run, too
    crossed = [
        await make.queued(queue=f"q{queue}", repo=repo + name) for queue, name in ("ab", "ba")
    ]
    async with first.doing(first.rt.settlement.outcome(works[1], Done())):
        await first.then(rt.settlement.outcome(works[0], Done()), conn)
    assert await placed(conn) == crossed


async def test_a_batch_with_a_key_and_the_end_of_its_holder_do_not_deadlock(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 3}})
    held = await make.running(queue="q", concurrency_key="k")
    other = await make.running(queue="q")
    batch = [REQUEST, invocation(type="noop", queue="q", concurrency_key="k")]

    async def waits_for_the_key() -> bool:
        waits = await rows(
            conn,
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND wait_event = 'advisory'",
        )
        return len(waits) == 1

    async with (
        first.doing(first.rt.settlement.outcome(other, Done())),  # has locked the bucket
        background(rt.submissions.submit_many(batch, owner)) as submitted,
    ):
        await wait_blocked(conn, by=first.pid)
        async with background(rt.settlement.outcome(held, Done())) as ended:
            await until(waits_for_the_key, "the end of the holder waits for the key")
            first.commit()
            plain, keyed = await submitted
            await ended
    assert await placed(conn) == [plain.number, keyed.number]


async def test_an_end_and_a_submission_that_wait_for_each_other_do_not_deadlock(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 3}})
    parent = await make.running(queue="other")
    plain = await make.queued(queue="q", after=(parent.number,))
    keyed = await make.queued(queue="q", after=(parent.number,), concurrency_key="k")
    request = invocation(type="noop", queue="q", concurrency_key="k")
    async with rt.db.connection() as other:
        await run(other, "BEGIN")
        await run(other, "SET LOCAL deadlock_timeout = '1min'")
        await run(other, "SELECT draftsman.lock_keys('{k}')")
        async with background(rt.settlement.outcome(parent, Done())) as ended:
            await wait_blocked(conn, by=other.info.backend_pid)  # it has locked the bucket
            (new,) = await rt.submissions.submit_many([request], owner, connection=other)
            assert await ended is Status.COMPLETED
            await run(other, "COMMIT")
    await rt.sweeps.run("postponed", LeaderTerm())
    assert await placed(conn) == [plain, keyed]  # ahead of the new job, which has not started
    assert (await rt.read_model.why(new.number)).text.startswith(f"D-{keyed} holds")


async def test_a_resume_waits_for_an_end_that_saw_the_pause(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, repo={"*": {"running": 1}})
    shop = "https://git.example.org/x/shop"
    work = await make.running(queue="other", repo=shop)
    held = await make.queued(queue="q", repo=shop)
    await rt.queues.pause("q", owner, "r")
    async with first.doing(first.rt.settlement.outcome(work, Done())):
        await first.then(rt.queues.resume("q", owner), conn)
    assert await placed(conn) == [held]


async def test_a_leader_leaves_the_places_that_another_gives(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"rate": "1/1s"}})
    numbers = [await make.queued(queue="q") for _ in range(3)]
    await conn.execute(
        "UPDATE draftsman.limit_buckets"
        " SET next_at = draftsman.now(), starts = '{}', start_counts = '{}'"
    )

    async def give(conn: Connection) -> int:
        return await limits.give_places(conn, LeaderTerm(), 100)

    async with first.doing(first.rt.db.run_transaction(give)):
        assert await rt.db.run_transaction(give) == 0
    assert await placed(conn) == numbers[:2]


async def test_buckets_in_an_open_transaction_keep_no_other_waiting(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"*": {"rate": "1/1s"}})
    numbers = [await make.queued(queue=queue) for queue in "aabb"]
    await conn.execute("UPDATE draftsman.limit_buckets SET starts = '{}', start_counts = '{}'")
    await conn.execute("BEGIN")
    await conn.execute("SELECT FROM draftsman.limit_buckets WHERE name = 'queue:a' FOR UPDATE")
    assert (
        await rt.db.run_transaction(lambda other: limits.give_places(other, LeaderTerm(), 1)) == 1
    )
    await conn.execute("COMMIT")
    assert await placed(conn) == [numbers[0], *numbers[2:]]


async def _end(
    runtime: Runtime, make: Factory, *works: ClaimedJob, queues: Sequence[str] = ("q",)
) -> list[int]:
    """End runs as a worker does, and return the jobs that it starts instead."""

    async def step(conn: Connection) -> list[ClaimedJob]:
        return await exchange(
            conn,
            [(work.lease, {}) for work in works],
            worker=make.worker,
            queues=queues,
            types=["noop"],
            free=5,
            ahead=0,
        )

    jobs = await runtime.db.run_transaction(step)
    return [job.number for job in jobs if job.status is Status.RUNNING]


async def test_two_workers_that_end_runs_do_not_wait_and_start_no_more_jobs_than_places(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 2}})
    works = [await make.running(queue="q") for _ in range(2)]
    numbers = [await make.queued(queue="q") for _ in range(5)]
    async with first.doing(_end(first.rt, make, works[0])) as one, asyncio.timeout(5):
        two = await _end(rt, make, works[1])
    assert (one.result(), two) == ([numbers[0]], [numbers[1]])
    assert await placed(conn) == numbers[:2]
    assert len(await waiting(conn)) == 3
    await check_places(rt)


async def test_places_that_an_end_had_to_leave_are_given_once(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 3}})
    works = [await make.running(queue="q") for _ in range(3)]
    numbers = [await make.queued(queue="q") for _ in range(4)]
    async with conn.transaction():
        await rows(conn, "SELECT FROM draftsman.job_states WHERE held_by IS NOT NULL FOR UPDATE")
        assert await _end(rt, make, works[0]) == []
    assert len(await placed(conn)) == 2  # the jobs that waited were locked
    async with first.doing(_end(first.rt, make, works[1])):
        await first.then(_end(rt, make, works[2]), conn)
    assert await placed(conn) == numbers[:3]
    await check_places(rt)


async def test_a_job_that_is_moved_ahead_meanwhile_waits_for_the_next_place(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    earlier, moved = [await make.queued(queue="q") for _ in range(2)]
    async with first.doing(first.rt.queues.prioritize(moved, 5, owner)), asyncio.timeout(5):
        assert await _end(rt, make, work) == [earlier]
    assert await placed(conn) == [earlier]
    assert await waiting(conn) == {moved: "queue:q"}


async def test_a_job_submitted_while_a_place_is_handed_over_waits_for_the_next_place(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    waiting_job = await make.queued(queue="q")
    async with first.doing(_end(first.rt, make, work)) as ended:
        async with asyncio.timeout(5):
            new = await rt.submissions.submit(REQUEST, owner)
    assert ended.result() == [waiting_job]
    assert await waiting(conn) == {new.number: "queue:q"}
    await check_places(rt)


async def test_the_end_in_a_worker_waits_for_a_submission_and_gives_it_its_place(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running(queue="q")
    async with first.doing(first.rt.submissions.submit(REQUEST, owner)) as submitted:
        assert await first.then(_end(rt, make, work), conn) == []
    assert await placed(conn) == [submitted.result().number]
    await check_places(rt)


async def test_ends_in_workers_with_common_limits_lock_the_limits_in_order(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    shop = "https://git.example.org/x/shop"
    await set_limits(rt, conn, queue={"q": {"running": 2}}, repo={"*": {"running": 5}})
    locked = await make.running(queue="other", repo=shop)
    works = [await make.running(queue="q") for _ in range(2)]
    handed = await make.queued(queue="q")
    both = await make.queued(queue="q", repo=shop)
    async with first.doing(first.rt.settlement.outcome(locked, Done())):
        assert await first.then(_end(rt, make, *works), conn) == [handed]
    assert await placed(conn) == [handed, both]
    await check_places(rt)


async def test_many_workers_never_start_more_jobs_than_places(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await set_limits(rt, conn, queue={"q": {"running": 5}, "p": {"running": 2}})
    await rt.submissions.submit_many(
        [invocation(type="noop", queue=queue) for queue in "qqp" * 40], owner
    )
    started = list[int]()
    limits_kept = True

    async def work() -> None:
        nonlocal limits_kept
        claim = Claim(rt.db, make.worker, ("q", "p"))
        done = dict[int, ClaimedJob]()
        for free in itertools.cycle((3, 1, 2)):
            leases = [(job.lease, dict[str, object]()) for job in done.values()]
            jobs = await claim.exchange(leases, types=["noop"], free=free, ahead=0)
            for job in jobs:  # a job that another worker has just locked is settled next time
                if job.status is Status.RUNNING:
                    done[job.number] = job
                    started.append(job.number)
                else:
                    del done[job.number]
            running = await rows(
                conn,
                "SELECT queue, count(*)::int FROM draftsman.job_states"
                " WHERE status = 'running' GROUP BY queue",
            )
            limits_kept &= all(count <= {"q": 5, "p": 2}[queue] for queue, count in running)
            if not jobs and len(started) == 120:
                return

    async with asyncio.timeout(60):
        await asyncio.gather(*(work() for _ in range(4)))
    assert len(set(started)) == 120
    assert limits_kept
    await check_places(rt)
