"""Concurrent submissions: a job for each key, an active job for each subject, none lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable

import pytest

from draftsman.database.database import Connection, Database
from draftsman.errors import IdempotencyConflict, Refused
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import background, wait_blocked
from tests.support.races import FirstSession


def _request(**fields: str) -> Invocation:
    return invocation(**{"type": "noop", "key": "k"} | fields)


async def test_100_concurrent_requests_with_one_key_are_one_job(rt: Runtime, owner: Actor) -> None:
    results = await asyncio.gather(*(rt.submissions.submit(_request(), owner) for _ in range(100)))
    assert len({result.number for result in results}) == 1
    assert Counter(result.outcome for result in results) == {"created": 1, "deduplicated": 99}
    assert len(await rt.read_model.jobs()) == 1
    assert len(await rt.read_model.job_events(results[0].number)) == 1


async def test_a_duplicate_request_waits_for_the_first_and_gets_its_job(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(first.rt.submissions.submit(_request(), owner)) as created:
        duplicate = await first.then(rt.submissions.submit(_request(), owner), conn)
    assert (created.result().outcome, duplicate.outcome) == ("created", "deduplicated")
    assert duplicate.number == created.result().number


async def test_another_request_with_the_key_waits_and_is_refused(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(first.rt.submissions.submit(_request(), owner)) as created:
        with pytest.raises(IdempotencyConflict, match="D-1 with a different request; use"):
            await first.then(rt.submissions.submit(_request(title="other"), owner), conn)
    assert created.result().outcome == "created"


async def test_a_duplicate_of_a_rolled_back_request_creates_the_job(
    rt: Runtime, db: Database, owner: Actor, conn: Connection
) -> None:
    rolled_back = row(_request(), owner, rt.limits)
    async with db.connection() as other:
        await other.execute("BEGIN")
        assert len(await submissions.submit(other, [rolled_back], "nobody")) == 1
        async with background(rt.submissions.submit(_request(), owner)) as duplicate:
            await wait_blocked(conn, by=other.info.backend_pid)
            await other.execute("ROLLBACK")
            assert (await duplicate).outcome == "created"
    assert [job.invoker_id for job in await rt.read_model.jobs()] == ["root"]


async def test_a_second_request_for_the_subject_waits_and_joins(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    first_request, two = (_request(key=key, subject_key="card:1") for key in ("a", "b"))
    async with first.doing(first.rt.submissions.submit(first_request, owner)) as created:
        joined = await first.then(rt.submissions.submit(two, owner), conn)
    assert (joined.outcome, joined.number) == ("joined", created.result().number)


async def test_50_concurrent_requests_for_one_subject_are_one_live_job(
    rt: Runtime, owner: Actor
) -> None:
    requests = [_request(key=str(n), subject_key="card:1") for n in range(50)]
    results = await asyncio.gather(*(rt.submissions.submit(request, owner) for request in requests))
    assert Counter(request.outcome for request in results) == {"created": 1, "joined": 49}
    assert len(await rt.read_model.jobs()) == 1


async def test_batches_of_the_same_keys_in_any_order_do_not_deadlock(
    rt: Runtime, owner: Actor
) -> None:
    keys = [str(n) for n in range(40)]
    orders = [keys, keys[::-1], keys[20:] + keys[:20], keys[::2] + keys[1::2]]
    batches = [[_request(key=key) for key in order] for order in orders * 3]
    answers = await asyncio.gather(*(rt.submissions.submit_many(batch, owner) for batch in batches))
    assert Counter(batch.outcome for made in answers for batch in made)["created"] == 40
    for order, results in zip(orders * 3, answers, strict=True):
        jobs = {batch.number: await rt.read_model.job(batch.number) for batch in results}
        assert [jobs[batch.number].idempotency_key for batch in results] == order


async def test_a_batch_that_waits_holds_no_key_that_comes_after_it(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    """Keys are inserted in their order: two batches meet at the first they share, and only wait."""
    async with first.doing(first.rt.submissions.submit(_request(key="m"), owner)):
        batch = rt.submissions.submit_many([_request(key="z"), _request(key="m")], owner)
        async with background(batch) as waiting:
            await wait_blocked(conn, by=first.pid)
            async with asyncio.timeout(5):
                assert (await rt.submissions.submit(_request(key="z"), owner)).outcome == "created"
            first.commit()
            assert [result.outcome for result in await waiting] == ["deduplicated"] * 2


async def test_a_retry_waits_for_a_new_job_of_its_subject_and_is_refused(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.canceled(subject_key="card:1")
    request = _request(key="new", subject_key="card:1")
    async with first.doing(first.rt.submissions.submit(request, make.owner)) as created:
        with pytest.raises(Refused, match="is active for the same subject"):
            await first.then(rt.job_control.retry(number, make.owner), conn)
    assert created.result().status is Status.QUEUED


async def test_two_concurrent_retries_create_one_job(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    number = await make.canceled()
    async with first.doing(first.rt.job_control.retry(number, make.owner)) as created:
        second = await first.then(rt.job_control.retry(number, make.owner), conn)
    assert (created.result().outcome, second.outcome) == ("created", "deduplicated")
    assert second.number == created.result().number


async def test_50_concurrent_retries_create_one_job(make: Factory, rt: Runtime) -> None:
    number = await make.canceled()
    results = await asyncio.gather(*(rt.job_control.retry(number, make.owner) for _ in range(50)))
    assert Counter(result.outcome for result in results) == {"created": 1, "deduplicated": 49}
    assert len(await rt.read_model.jobs()) == 2


def _rescue(rt: Runtime, make: Factory) -> Awaitable[int]:
    """Rescue the factory worker's jobs, in the transaction of the sweep."""
    return rt.db.run_transaction(
        lambda conn: rt.dead_workers.rescue_runs(conn, LeaderTerm(), [make.worker])
    )


async def test_a_manual_retry_of_a_lost_job_waits_for_its_new_job_and_returns_it(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running(on_lost="new_job")
    async with first.doing(_rescue(first.rt, make)) as rescued:
        assert await _rescue(rt, make) == 0  # skips jobs that another rescue has locked
        by_hand = await first.then(rt.job_control.retry(work.number, make.owner), conn)
    assert rescued.result() == 1
    [new, old] = await rt.read_model.jobs()
    assert (old.number, new.number, by_hand.outcome) == (
        work.number,
        by_hand.number,
        "deduplicated",
    )
    assert (await rt.read_model.job(new.number)).chain_length == 1
    assert await _rescue(rt, make) == 0


async def test_a_second_unique_request_waits_and_joins(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    request = invocation(type="noop", payload={"n": 1}, unique={"seconds": 60})
    async with first.doing(first.rt.submissions.submit(request, owner)) as created:
        joined = await first.then(rt.submissions.submit(request, owner), conn)
    assert (joined.outcome, joined.number) == ("joined", created.result().number)


async def test_a_request_that_waits_for_the_start_of_a_job_joins_it(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection, make: Factory
) -> None:
    request = invocation(type="noop", payload={"n": 1}, unique={"replace": True})
    number = (await rt.submissions.submit(request, owner)).number
    claim = first.rt.claim(make.worker, ("default",))
    async with first.doing(claim.exchange([], types=["noop"], free=1, ahead=0)):
        joined = await first.then(rt.submissions.submit(request, owner), conn)
    assert (joined.outcome, joined.number) == ("joined", number)


async def test_50_concurrent_requests_that_replace_leave_one_job(rt: Runtime, owner: Actor) -> None:
    request = invocation(type="noop", payload={"n": 1}, unique={"replace": True})
    await asyncio.gather(*(rt.submissions.submit(request, owner) for _ in range(50)))
    statuses = Counter(job.status for job in await rt.read_model.jobs())
    assert statuses == {Status.QUEUED: 1, Status.CANCELED: 49}
