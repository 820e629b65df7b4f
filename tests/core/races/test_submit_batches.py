"""Submissions that meet share a transaction: none fails or waits because of another."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict

import pytest

from draftsman.database.database import Connection
from draftsman.errors import DatabaseUnreachable, IdempotencyConflict, NotPermitted, UsageError
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service import batching
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.waits import background, until, wait_blocked
from tests.support.races import FirstSession

ANNA = Actor("slack", "U-ANNA", "Anna")
BEN = Actor("slack", "U-BEN", "Ben")
TARGET = ("slack:C1/1700000000.000100",)
Item = tuple[Invocation, Actor]
Made = SubmittedJob | BaseException


def _request(key: str, **fields: object) -> Invocation:
    return invocation(**{"type": "noop", "key": key, "notify": TARGET} | fields)


async def _submit(rt: Runtime, *items: Item) -> list[Made]:
    """Submit requests at once: the first alone, the others together.

    What is known of their types is read before.
    """
    types = {request.type for request, _ in items}
    await rt.submissions._type_warnings.of(types)
    await rt.published_types.of(types)
    return await asyncio.gather(
        *(rt.submissions.submit(*item) for item in items), return_exceptions=True
    )


async def _submit_shared(rt: Runtime, *items: Item) -> list[Made]:
    """Submit requests in a transaction, after another request."""
    _, *made = await _submit(rt, (_request("lead"), ANNA), *items)
    return made


@asynccontextmanager
async def _held(
    first: FirstSession, monkeypatch: pytest.MonkeyPatch, *items: Item
) -> AsyncIterator[list[asyncio.Task[SubmittedJob]]]:
    """Submit requests in a transaction that waits to commit; another request is held as well."""
    monkeypatch.setattr(batching, "PATIENCE", 0.01)
    async with first.doing(first.rt.submissions.submit(_request("lead"), ANNA)):
        of_lead = first.pid
        tasks = [asyncio.create_task(first.rt.submissions.submit(*item)) for item in items]

        async def is_held() -> bool:
            return first.pid != of_lead

        await until(is_held, "a second held transaction")
        yield tasks


async def test_deliveries_of_one_event_in_a_batch_are_one_job(rt: Runtime, owner: Actor) -> None:
    made = await _submit_shared(rt, *[(_request("k"), owner)] * 3)
    jobs = [item for item in made if isinstance(item, SubmittedJob)]
    assert len({job.number for job in jobs}) == 1
    assert Counter(job.outcome for job in jobs) == {"created": 1, "deduplicated": 2}
    assert len(await deliveries_of(rt, jobs[0].number)) == 1


async def test_processes_that_get_the_same_events_make_each_job_once(
    rt: Runtime, owner: Actor
) -> None:
    """Each process has its own order, and events of several people."""
    items = [(_request(str(n)), (owner, ANNA)[n % 2]) for n in range(60)]
    orders = [items, items[::-1], items[20:] + items[:20], items[::2] + items[1::2]]
    made = await asyncio.gather(*(_submit(rt, *order) for order in orders))
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
    made = await _submit_shared(rt, *((_request(key), owner) for key in keys))
    assert [job.number for job in made if isinstance(job, SubmittedJob)] == [2, 3, 4, 5]
    stored = [(await rt.read_model.job(number)).idempotency_key for number in range(2, 6)]
    assert stored == keys


async def test_event_names_the_actor_of_its_own_request(rt: Runtime, owner: Actor) -> None:
    await _submit_shared(rt, (_request("a"), owner), (_request("b"), ANNA))
    for job in await rt.read_model.jobs():
        (event,) = await rt.read_model.job_events(job.number)
        expected = {"a": owner.name, "b": ANNA.name, "lead": ANNA.name}
        assert event.actor == expected[(await rt.read_model.job(job.number)).idempotency_key]


async def test_rejected_requests_of_a_batch_fail_alone(rt: Runtime, owner: Actor) -> None:
    await rt.submissions.submit(_request("used"), owner)
    made = await _submit_shared(
        rt,
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
    made = await _submit_shared(
        rt, (_request("a"), owner), (_request("used", title="other"), owner)
    )
    assert isinstance(made[0], SubmittedJob)
    assert made[0].outcome == "created"
    assert isinstance(made[1], IdempotencyConflict)


async def test_conflict_names_the_place_in_the_batch_of_its_own_caller(
    rt: Runtime, owner: Actor
) -> None:
    await rt.submissions.submit(_request("used"), owner)
    _, conflict = await _submit_shared(
        rt, (_request("a"), owner), (_request("used", title="other"), owner)
    )
    assert isinstance(conflict, IdempotencyConflict)
    assert conflict.place == 0


async def test_request_that_the_database_refuses_fails_alone(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    await conn.execute(
        "ALTER TABLE draftsman.job_requests ADD CONSTRAINT odd CHECK (ticket_title <> 'odd')"
    )
    odd = _request("odd", title="odd")
    alone = (await asyncio.gather(rt.submissions.submit(odd, owner), return_exceptions=True))[0]
    a, refused, b = await _submit_shared(
        rt, (_request("a"), owner), (odd, owner), (_request("b"), ANNA)
    )
    assert [job.outcome for job in (a, b) if isinstance(job, SubmittedJob)] == ["created"] * 2
    assert isinstance(alone, Exception)
    assert (type(refused), str(refused)) == (type(alone), str(alone))


async def test_request_that_waits_for_another_process_delays_no_neighbor(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(first.rt.submissions.submit(_request("held"), owner)) as created:
        held = (_request("held"), owner)
        async with background(
            _submit_shared(rt, held, (_request("free"), owner), (_request("subject"), ANNA))
        ) as made:
            async with asyncio.timeout(10):
                while len(await rt.read_model.jobs()) < 3:
                    await wait_blocked(conn, by=first.pid)
                later = await rt.submissions.submit(_request("later"), owner)
            await wait_blocked(conn, by=first.pid)
            assert not made.done()
            first.commit()
            twin, *free = await made
    assert later.outcome == "created"
    assert [job.outcome for job in free if isinstance(job, SubmittedJob)] == ["created"] * 2
    assert isinstance(twin, SubmittedJob)
    assert (twin.outcome, twin.number) == ("deduplicated", created.result().number)


async def test_nothing_is_reported_before_the_commit(
    first: FirstSession, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = (_request("a"), owner), (_request("b"), owner)
    async with _held(first, monkeypatch, *items) as tasks:
        assert await rt.read_model.jobs() == []
        assert not any(task.done() for task in tasks)
        first.commit()
        assert [(await task).outcome for task in tasks] == ["created", "created"]
        assert len(await rt.read_model.jobs()) == 3


async def test_canceled_requests_of_a_transaction_leave_no_job(
    first: FirstSession, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = (_request("a"), owner), (_request("b"), owner)
    async with _held(first, monkeypatch, *items) as tasks:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True, True]
    assert [job.number for job in await rt.read_model.jobs()] == [1], "that of the other request"


async def test_request_that_is_canceled_with_neighbors_knows_its_job(
    first: FirstSession, rt: Runtime, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = (_request("a"), owner), (_request("b"), owner)
    async with _held(first, monkeypatch, *items) as (canceled, other):
        canceled.cancel()
        first.commit()
        assert (await other).outcome == "created"
        with pytest.raises(asyncio.CancelledError) as cancellation:
            await canceled
    (job,) = cancellation.value.args
    assert (await rt.read_model.job(job.number)).idempotency_key == "a"


async def test_lost_connection_fails_each_request_which_is_then_found_once(
    rt: Runtime,
    first: FirstSession,
    owner: Actor,
    conn: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server ends the session between the statements and the commit."""
    items = (_request("a"), owner), (_request("b"), owner)
    async with _held(first, monkeypatch, *items) as tasks:
        await conn.execute("SELECT pg_terminate_backend(%s)", (first.pid,))
        first.commit()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(error, DatabaseUnreachable)
    again = await _submit(rt, *items)
    assert [job.outcome for job in again if isinstance(job, SubmittedJob)] == ["created"] * 2
    assert len(await rt.read_model.jobs()) == 3


async def test_batch_of_two_people_is_one_transaction(rt: Runtime, owner: Actor) -> None:
    items = [(_request(str(n)), (owner, ANNA)[n % 2]) for n in range(20)]
    await _submit_shared(rt, *items)
    times = Counter(job.created_at for job in await rt.read_model.jobs())
    assert sorted(times.values()) == [1, 20], "the time of a row is that of its transaction"


async def test_transaction_of_a_caller_is_not_shared(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    """Its rollback removes its own job alone."""
    async with conn.transaction(force_rollback=True):
        own = rt.submissions.submit_many([_request("own")], owner, connection=conn)
        await asyncio.gather(own, _submit_shared(rt, (_request("a"), owner)))
    keys = [
        (await rt.read_model.job(job.number)).idempotency_key for job in await rt.read_model.jobs()
    ]
    assert sorted(keys) == ["a", "lead"]


def _random_items(seed: int, owner: Actor, prefix: str) -> list[Item]:
    """Return requests that repeat each other or are refused; keys have the prefix."""
    choice = random.Random(seed)
    items = []
    for _ in range(60):
        fields: dict[str, object] = {"type": choice.choice(["noop", "noop", "other"])}
        if choice.random() < 0.5:
            fields["key"] = f"{prefix}k{choice.randrange(8)}"
        if choice.random() < 0.3:
            fields["concurrency_key"] = f"{prefix}c{choice.randrange(2)}"
        if choice.random() < 0.2:
            fields["notify"] = choice.choice([TARGET, ("webhook:none",), ("none",)])
        if choice.random() < 0.2:
            fields |= choice.choice([{"delay": 3600.0}, {"priority": 5}, {"tags": ("a", 'b"{')}])
        fields["payload"] = choice.choice(
            [{}, {}, {}, {"n": 1}, {"n": True}, {"n": 1.0}, {"é": None}]
        )
        items.append((invocation(**fields), choice.choice([owner, owner, BEN])))
    return items


async def _outcomes(rt: Runtime, made: Iterable[Made], prefix: str) -> list[str]:
    """Return the jobs of a series with their rows and events, and the errors of the others."""
    outcomes = []
    numbers: dict[int, int] = {}
    for job in made:
        if not isinstance(job, SubmittedJob):
            outcomes.append(f"{type(job)} {re.sub(r'D-[0-9]+', 'D-N', str(job))}")
            continue
        numbers.setdefault(job.number, len(numbers))
        row = asdict(await rt.read_model.job(job.number))
        own = {name for name in row if name in ("number", "id", "position") or name.endswith("_at")}
        columns = {name: value for name, value in row.items() if name not in own}
        events = await rt.read_model.job_events(job.number)
        recorded = [(event.kind, event.actor, event.payload) for event in events]
        outcomes.append(f"{job.outcome} {numbers[job.number]} {columns} {recorded}")
    return [re.sub("auto:[0-9a-f-]+", "auto", text).replace(prefix, "") for text in outcomes]


@pytest.mark.parametrize("seed", range(4))
async def test_shared_submissions_are_like_submissions_one_by_one(
    rt: Runtime, owner: Actor, seed: int
) -> None:
    shared = await _submit(rt, *_random_items(seed, owner, "shared-"))
    alone: list[Made] = []
    for item in _random_items(seed, owner, "alone-"):
        alone += await _submit(rt, item)
    outcomes = await _outcomes(rt, shared, "shared-")
    assert outcomes == await _outcomes(rt, alone, "alone-")
    assert {text.split()[0] for text in outcomes} == {"created", "deduplicated", "<class"}
