"""Queues whose jobs are taken in turn across repositories or people."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.support.limits import set_limits
from tests.support.statements import value


@pytest.fixture(autouse=True)
async def _partitioned(rt: Runtime, conn: Connection) -> None:
    await set_limits(rt, conn, queue={"q": {"partition": "repo"}})


async def _submit(
    rt: Runtime, owner: Actor, names: str, priority: int = 0, queue: str = "q"
) -> list[int]:
    """Submit a batch of jobs, each of the repository on the host with this letter."""
    requests = [
        invocation(
            type="noop", queue=queue, repo=f"https://{name}.example.org/x/pay", priority=priority
        )
        for name in names
    ]
    return [job.number for job in await rt.submissions.submit_many(requests, owner)]


async def _order(rt: Runtime, queue: str | None = None, *, held: bool = False) -> str:
    listed = await (rt.queues.held if held else rt.queues.order)(10_000, queue)
    jobs = {job.number: job for job in await rt.read_model.jobs(limit=10_000)}
    requests = [jobs[job.number].request for job in listed]
    return "".join(request.repo_host[:1] for request in requests if request and request.repo_host)


async def test_few_jobs_of_one_are_not_behind_many_of_another(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    for _ in range(4):
        await _submit(rt, owner, "a" * 1000)
    few = await _submit(rt, owner, "bbb")
    assert (await _order(rt))[:8] == "abababaa"
    assert set(few) <= {job.number for job in (await rt.queues.order())[:6]}


async def test_single_requests_are_in_turn_like_those_of_a_batch(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    await _submit(rt, owner, "aaab")
    for name in "cac":
        await _submit(rt, owner, name)
    assert await _order(rt) == "abcacaa"


async def test_a_partition_that_was_served_before_is_not_punished(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await _submit(rt, owner, "a" * 20)
    for _ in range(2):
        for work in await claim(conn, make):
            await rt.settlement.outcome(work, Done())
    await _submit(rt, owner, "bb")
    await _submit(rt, owner, "aa")
    assert await _order(rt) == "baba"


async def test_a_partition_that_is_being_served_is_not_ahead_of_a_new_one(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    await _submit(rt, owner, "aaaaaaaa")
    assert len(await claim(conn, make, free=4)) == 4
    await _submit(rt, owner, "bb")
    assert await _order(rt) == "ababaa"


async def test_jobs_are_in_turn_while_all_wait_for_a_rate_or_the_end_of_a_pause(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    rate = {"partition": "repo", "rate": "1/1h"}
    await set_limits(rt, conn, queue={"q": rate, "type": {"partition": "repo"}})
    await _submit(rt, owner, "a" * 6, queue="other")
    await _submit(rt, owner, "a")
    (work,) = await claim(conn, make)
    await rt.settlement.outcome(work, Done())  # the rate is used, and no job runs
    await _submit(rt, owner, "aaaa")
    await _submit(rt, owner, "bb")
    assert await _order(rt, "q", held=True) == "ababaa"

    await rt.queues.pause("type", owner, "out of order", "noop")
    for names in ("aaaa", "bb"):
        await _submit(rt, owner, names, queue="type")
        await rt.sweeps.run("holds", LeaderTerm())
    assert await _order(rt, "type", held=True) == "ababaa"


async def test_priorities_and_other_queues_are_as_before(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    await _submit(rt, owner, "aaa")
    await _submit(rt, owner, "ab", priority=5)
    await _submit(rt, owner, "aab", queue="other")
    assert await _order(rt) == "aab" + "abaaa"
    assert await value(conn, "SELECT count(*) FROM draftsman.partition_positions") == 3


async def test_a_job_is_moved_between_jobs_with_equal_positions(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    numbers = await _submit(rt, owner, "aaabbc")
    assert await _order(rt) == "abcaba"
    await rt.queues.move(numbers[5], "before", owner, numbers[3])
    assert await _order(rt) == "acbaba"
