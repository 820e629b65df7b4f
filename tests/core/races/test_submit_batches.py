"""Batches of requests that form under load: no request fails or waits because of another."""

from __future__ import annotations

import asyncio
from collections import Counter

from draftsman.database.database import Connection
from draftsman.errors import DatabaseUnreachable, IdempotencyConflict, NotPermitted, UsageError
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.batching import Batcher
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.waits import background, wait_blocked
from tests.support.races import FirstSession

Requests = Batcher[tuple[Invocation, Actor], SubmittedJob]
ANNA = Actor("slack", "U-ANNA", "Anna")
BEN = Actor("slack", "U-BEN", "Ben")
TARGET = ("slack:C1/1700000000.000100",)


def _request(key: str, **fields: object) -> Invocation:
    return invocation(**{"type": "noop", "key": key, "notify": TARGET} | fields)


def _batcher(rt: Runtime) -> Requests:
    return Batcher(rt.submissions.submit_each)


async def _submit(
    requests: Requests, *items: tuple[Invocation, Actor]
) -> list[SubmittedJob | BaseException]:
    """Submit requests at once, in a batch."""
    return await asyncio.gather(*(requests.submit(item) for item in items), return_exceptions=True)


async def test_deliveries_of_one_event_in_a_batch_are_one_job(rt: Runtime, owner: Actor) -> None:
    made = await _submit(_batcher(rt), *[(_request("k"), owner)] * 3)
    jobs = [item for item in made if isinstance(item, SubmittedJob)]
    assert len({job.number for job in jobs}) == 1
    assert Counter(job.outcome for job in jobs) == {"created": 1, "deduplicated": 2}
    assert len(await deliveries_of(rt, jobs[0].number)) == 1


async def test_processes_that_get_the_same_events_make_each_job_once(
    rt: Runtime, owner: Actor
) -> None:
    """Each process has its own order, and events of several people."""
    items = [(_request(str(n)), (owner, ANNA)[n % 2]) for n in range(40)]
    orders = [items, items[::-1], items[20:] + items[:20], items[::2] + items[1::2]]
    made = await asyncio.gather(*(_submit(_batcher(rt), *order) for order in orders))
    jobs = [job for batch in made for job in batch if isinstance(job, SubmittedJob)]
    assert len(jobs) == len(orders) * len(items)
    assert Counter(job.outcome for job in jobs)["created"] == len(items)
    for order, batch in zip(orders, made, strict=True):
        for (request, actor), job in zip(order, batch, strict=True):
            assert isinstance(job, SubmittedJob)
            stored = await rt.read_model.job(job.number)
            assert (stored.idempotency_key, stored.source) == (request.key, actor.channel)


async def test_jobs_of_a_person_are_numbered_in_the_order_of_the_requests(
    rt: Runtime, owner: Actor
) -> None:
    keys = ["b", "a", "d", "c"]
    made = await _submit(_batcher(rt), *((_request(key), owner) for key in keys))
    assert [job.number for job in made if isinstance(job, SubmittedJob)] == [1, 2, 3, 4]
    stored = [(await rt.read_model.job(number)).idempotency_key for number in range(1, 5)]
    assert stored == keys


async def test_event_names_the_actor_of_its_own_request(rt: Runtime, owner: Actor) -> None:
    await _submit(_batcher(rt), (_request("a"), owner), (_request("b"), ANNA))
    for job in await rt.read_model.jobs():
        (event,) = await rt.read_model.job_events(job.number)
        expected = {"a": owner.name, "b": ANNA.name}
        assert event.actor == expected[(await rt.read_model.job(job.number)).idempotency_key]


async def test_rejected_requests_of_a_batch_fail_alone(rt: Runtime, owner: Actor) -> None:
    await rt.submissions.submit(_request("used"), owner)
    made = await _submit(
        _batcher(rt),
        (_request("a"), owner),
        (_request("b"), BEN),
        (_request("c", notify=("webhook:none",)), owner),
        (_request("used", title="other"), owner),
        (_request("d"), ANNA),
    )
    assert [type(item) for item in made] == [
        SubmittedJob, NotPermitted, UsageError, IdempotencyConflict, SubmittedJob,
    ]  # fmt: skip
    created = [item.outcome for item in made if isinstance(item, SubmittedJob)]
    assert created == ["created", "created"]
    assert "unknown webhook 'none'" in str(made[2])


async def test_conflict_alone_leaves_its_neighbors_created(rt: Runtime, owner: Actor) -> None:
    """A second attempt would report them as existing jobs."""
    await rt.submissions.submit(_request("used"), owner)
    made = await _submit(
        _batcher(rt), (_request("a"), owner), (_request("used", title="other"), owner)
    )
    assert isinstance(made[0], SubmittedJob)
    assert made[0].outcome == "created"
    assert isinstance(made[1], IdempotencyConflict)


async def test_request_that_waits_for_another_process_delays_no_neighbor(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    requests = _batcher(rt)
    async with first.doing(first.rt.submissions.submit(_request("held"), owner)) as created:
        held = (_request("held"), owner)
        async with background(_submit(requests, held, (_request("free"), owner))) as both:
            await wait_blocked(conn, by=first.pid)
            async with asyncio.timeout(10):
                later = await requests.submit((_request("later"), owner))
                while len(await rt.read_model.jobs()) < 2:
                    await wait_blocked(conn, by=first.pid)
            assert not both.done()
            first.commit()
            twin, free = await both
    assert later.outcome == "created"
    assert isinstance(free, SubmittedJob)
    assert free.outcome == "created"
    assert isinstance(twin, SubmittedJob)
    assert (twin.outcome, twin.number) == ("deduplicated", created.result().number)


async def test_nothing_is_reported_before_the_commit(
    first: FirstSession, rt: Runtime, owner: Actor
) -> None:
    requests = _batcher(first.rt)
    items = (_request("a"), owner), (_request("b"), owner)
    async with first.doing(_submit(requests, *items)) as made:
        assert await rt.read_model.jobs() == []
        assert not made.done()
        first.commit()
        assert [job.outcome for job in await made if isinstance(job, SubmittedJob)] == [
            "created",
            "created",
        ]
        assert len(await rt.read_model.jobs()) == 2


async def test_canceled_requests_of_a_batch_leave_no_job(
    first: FirstSession, rt: Runtime, owner: Actor
) -> None:
    """Both listeners reach their timeouts while the transaction is open."""
    requests = _batcher(first.rt)
    items = (_request("a"), owner), (_request("b"), owner)
    tasks = [asyncio.create_task(requests.submit(item)) for item in items]
    async with first.doing(asyncio.wait(tasks)):
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True, True]
    assert await rt.read_model.jobs() == []


async def test_lost_connection_fails_each_request_which_is_then_found_once(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    """The server ends the session between the statements and the commit."""
    requests = _batcher(first.rt)
    items = (_request("a"), owner), (_request("b"), owner)
    async with first.doing(_submit(requests, *items)) as made:
        await conn.execute("SELECT pg_terminate_backend(%s)", (first.pid,))
        first.commit()
        for error in await made:
            assert isinstance(error, DatabaseUnreachable)
    again = await _submit(_batcher(rt), *items)
    assert [job.outcome for job in again if isinstance(job, SubmittedJob)] == ["created"] * 2
    assert len(await rt.read_model.jobs()) == 2


async def test_batch_of_two_people_is_one_transaction(rt: Runtime, owner: Actor) -> None:
    items = [(_request(str(n)), (owner, ANNA)[n % 2]) for n in range(20)]
    await _submit(_batcher(rt), *items)
    times = {job.created_at for job in await rt.read_model.jobs()}
    assert len(times) == 1, "the time of a row is that of its transaction"
