"""Submissions of children, ends of parents and cancels in two sessions."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, Refused
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.support.races import FirstSession


async def end(rt: Runtime, work: ClaimedJob, *, failed: bool = False) -> Status | None:
    """End a run."""
    if failed:
        return await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    return await rt.settlement.outcome(work, Done())


@pytest.mark.parametrize("failed", [False, True])
async def test_a_submission_waits_for_the_end_of_the_parent_and_counts_it(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, failed: bool
) -> None:
    work = await make.running()
    request = invocation(type="noop", queue="q", after=(work.number,))
    async with first.doing(end(first.rt, work, failed=failed)):
        child = await first.then(rt.submissions.submit(request, owner), conn)
    assert child.status is (Status.CANCELED if failed else Status.QUEUED)
    assert [w.number for w in await claim(conn, make)] == ([] if failed else [child.number])


@pytest.mark.parametrize("failed", [False, True])
async def test_the_end_of_a_parent_waits_for_a_submission_and_sees_its_job(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, failed: bool
) -> None:
    work = await make.running()
    request = invocation(type="noop", queue="q", after=(work.number,))
    async with first.doing(first.rt.submissions.submit(request, owner)) as submitted:
        await first.then(end(rt, work, failed=failed), conn)
    child = submitted.result().number
    assert [w.number for w in await claim(conn, make)] == ([] if failed else [child])
    status = (await rt.read_model.job(child)).status
    assert status is (Status.CANCELED if failed else Status.RUNNING)


async def test_two_parents_that_end_at_once_release_their_child(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    works = [await make.running(), await make.running()]
    child = await make.queued(queue="q", after=tuple(work.number for work in works))
    async with first.doing(end(first.rt, works[0])):
        await first.then(end(rt, works[1]), conn)
    assert [work.number for work in await claim(conn, make)] == [child]


async def test_a_parent_that_fails_while_another_completes_cancels_the_child(
    rt: Runtime, first: FirstSession, make: Factory, conn: Connection
) -> None:
    works = [await make.running(), await make.running()]
    child = await make.queued(queue="q", after=tuple(work.number for work in works))
    last = await make.queued(queue="q", after=(child,), on="failure")
    async with first.doing(end(first.rt, works[0])):
        await first.then(end(rt, works[1], failed=True), conn)
    assert (await rt.read_model.job(child)).status is Status.CANCELED
    assert [work.number for work in await claim(conn, make)] == [last]


async def test_a_settled_parent_in_a_claim_is_left_for_the_next_while_its_child_is_submitted(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running()
    settling = rt.claim(make.worker, ("none",))
    request = invocation(type="noop", queue="q", after=(work.number,))

    async def settle() -> None:
        await settling.exchange([(work.lease, {})], types=["noop"], free=0, ahead=0)

    async with first.doing(first.rt.submissions.submit(request, owner)) as submitted:
        async with asyncio.timeout(5):
            await settle()
    assert (await rt.read_model.job(work.number)).status is Status.RUNNING
    assert await claim(conn, make) == []
    await settle()
    assert [w.number for w in await claim(conn, make)] == [submitted.result().number]


async def test_a_cancel_of_the_child_waits_for_the_end_of_its_parent(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running()
    child = await make.queued(queue="q", after=(work.number,))
    async with first.doing(end(first.rt, work)):
        await first.then(rt.job_control.cancel(child, owner), conn)
    assert (await rt.read_model.job(child)).status is Status.CANCELED
    assert await claim(conn, make) == []


async def test_the_end_of_a_parent_waits_for_a_cancel_of_the_child(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    work = await make.running()
    child = await make.queued(queue="q", after=(work.number,))
    async with first.doing(first.rt.job_control.cancel(child, owner)):
        await first.then(end(rt, work), conn)
    assert (await rt.read_model.job(child)).cancel_requested_by == make.owner.name
    assert await claim(conn, make) == []


async def test_a_cancel_of_a_tree_waits_for_a_submission_and_cancels_its_job(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    root = await make.queued()
    child = await make.queued(queue="q", after=(root,))
    request = invocation(type="noop", queue="q", after=(child,), on="any")
    async with first.doing(first.rt.submissions.submit(request, owner)) as submitted:
        canceled = await first.then(rt.job_control.cancel_tree(root, owner), conn)
    assert [item.number for item in canceled] == [root, child, submitted.result().number]
    assert await claim(conn, make) == []


async def test_a_submission_waits_for_the_cancel_of_a_tree(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    root = await make.queued()
    child = await make.queued(queue="q", after=(root,))
    request = invocation(type="noop", queue="q", after=(child,))
    async with first.doing(first.rt.job_control.cancel_tree(root, owner)):
        late = await first.then(rt.submissions.submit(request, owner), conn)
    assert late.status is Status.CANCELED


async def test_two_batches_with_the_same_keys_share_a_workflow(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    batch = [
        invocation(type="noop", queue="q", name="a", key="a"),
        invocation(type="noop", queue="q", key="b", after=("a",)),
    ]
    async with first.doing(first.rt.submissions.submit_many(batch, owner)) as created:
        again = await first.then(rt.submissions.submit_many(batch, owner), conn)
    assert [job.number for job in again] == [job.number for job in created.result()]
    assert [work.number for work in await claim(conn, make)] == [again[0].number]


async def test_a_parent_that_waits_for_a_key_gets_it_although_its_child_is_being_submitted(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    holder = await make.running(queue="q", concurrency_key="k")
    parent = await make.queued(queue="q", concurrency_key="k")
    request = invocation(type="noop", queue="other", after=(parent,))
    async with first.doing(end(first.rt, holder)):
        await first.then(rt.submissions.submit(request, owner), conn)
    assert [work.number for work in await claim(conn, make)] == [parent]


async def test_a_parent_gets_the_key_of_a_job_that_ends_while_its_child_is_submitted(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    holder = await make.running(queue="q", concurrency_key="k")
    parent = await make.queued(queue="q", concurrency_key="k")
    request = invocation(type="noop", queue="other", after=(parent,))
    async with first.doing(first.rt.submissions.submit(request, owner)):
        await first.then(end(rt, holder), conn)
    assert [work.number for work in await claim(conn, make)] == [parent]


@pytest.mark.parametrize("seed", range(5))
async def test_many_ends_submissions_and_cancels_at_once_leave_no_job_behind(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection, seed: int
) -> None:
    chance = random.Random(seed)
    numbers: list[int] = []

    async def grow() -> None:
        for _ in range(10):
            after = tuple(chance.sample(numbers, min(len(numbers), chance.randint(0, 3))))
            on = chance.choice(["success", "failure", "any"]) if after else "success"
            fields: dict[str, Any] = {"after": after, "on": on} if after else {}
            key = chance.choice([None, "k1", "k2"])
            numbers.append(await make.queued(queue="q", concurrency_key=key, **fields))

    async def work() -> None:
        for _ in range(30):
            for claimed in await claim(conn, make):
                await end(rt, claimed, failed=chance.random() < 0.3)
            await asyncio.sleep(0)

    async def cancel() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            with suppress(Refused, IndexError):
                await rt.job_control.cancel_tree(chance.choice(numbers), owner)

    await asyncio.gather(grow(), grow(), work(), cancel())
    while works := await claim(conn, make):
        for claimed in works:
            await end(rt, claimed)
    for number in numbers:
        assert (await rt.read_model.job(number)).finished_at is not None
