"""Job groups: order, failure policies, additions, retries, cancels and states."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound, Refused, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob, RunStatus
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.core.workflows.test_dependencies import fail, statuses
from tests.support.statements import rows

Q = {"type": "noop", "queue": "q"}


async def add(rt: Runtime, owner: Actor, count: int, name: str = "g", **group: str) -> list[int]:
    """Add jobs to a group; return their numbers."""
    items = [invocation(**Q, group={"name": name, **group}) for _ in range(count)]
    return [job.number for job in await rt.submissions.submit_many(items, owner)]


async def complete(rt: Runtime, works: list[ClaimedJob]) -> None:
    """Complete runs."""
    for work in works:
        await rt.settlement.outcome(work, Done())


async def progress(rt: Runtime, name: str = "g") -> tuple[str, str]:
    """Return the state and progress of a group."""
    group = await rt.workflows.groups.get(name)
    return str(group.state), group.progress


async def numbers(conn: Connection, make: Factory) -> list[int]:
    """Claim all jobs; return their numbers."""
    return [work.number for work in await claim(conn, make)]


async def test_the_jobs_of_a_sequential_group_run_one_by_one(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    jobs = await add(rt, owner, 3, kind="sequential")
    assert await progress(rt) == ("running", "0 of 3 succeeded, 3 waiting")
    for job in jobs:
        works = await claim(conn, make)
        assert [work.number for work in works] == [job]
        await complete(rt, works)
    assert await progress(rt) == ("succeeded", "3 of 3 succeeded")


async def test_a_sequential_group_that_stops_skips_the_jobs_after_a_failure(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    jobs = await add(rt, owner, 3, kind="sequential")
    (work,) = await claim(conn, make)
    await fail(rt, work)
    (later,) = await add(rt, owner, 1)
    assert await statuses(rt, *jobs, later) == ["failed", "canceled", "canceled", "canceled"]
    assert await progress(rt) == ("failed", "0 of 4 succeeded, 1 failed, 3 canceled")
    members = await rt.workflows.groups.members("g")
    assert [item.number for item in members] == [*jobs, later]
    assert members[1].reason == f"D-{jobs[0]} failed"
    assert [run.status for run in await rt.read_model.runs(later)] == [RunStatus.SKIPPED]


async def test_a_sequential_group_that_continues_runs_the_jobs_after_a_failure(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    jobs = await add(rt, owner, 2, kind="sequential", on_failure="continue")
    (work,) = await claim(conn, make)
    assert (await rt.read_model.why(jobs[1])).text == f"waits for D-{jobs[0]} (running)"
    await fail(rt, work)
    works = await claim(conn, make)
    assert [item.number for item in works] == [jobs[1]]
    await complete(rt, works)
    assert await progress(rt) == ("failed", "1 of 2 succeeded, 1 failed")


async def test_a_job_is_added_behind_the_last_of_a_sequential_group(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    (first,) = await add(rt, owner, 1, kind="sequential")
    (second,) = await add(rt, owner, 1)
    works = await claim(conn, make)
    assert [work.number for work in works] == [first]
    await complete(rt, works)
    works = await claim(conn, make)
    assert [work.number for work in works] == [second]
    await complete(rt, works)
    (third,) = await add(rt, owner, 1, kind="sequential", on_failure="stop")
    assert await numbers(conn, make) == [third]


async def test_a_parallel_group_that_stops_cancels_those_that_have_not_started(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    jobs = await add(rt, owner, 2, kind="parallel")
    running = await claim(conn, make)
    assert [work.number for work in running] == jobs
    later = await add(rt, owner, 2)
    at = await rt.submissions.submit(invocation(**Q, group="g", delay=60), owner)
    other = await make.queued(queue="q")
    child = await make.queued(queue="q", after=(later[0],), on="failure")
    await fail(rt, running[0])
    assert await statuses(rt, *later, at.number) == ["canceled"] * 3
    assert [run.status for run in await rt.read_model.runs(at.number)] == [RunStatus.SKIPPED]
    assert await numbers(conn, make) == [other, child]
    await complete(rt, running[1:])
    assert await progress(rt) == ("failed", "1 of 5 succeeded, 1 failed, 3 canceled")
    skipped = (await rt.workflows.groups.members("g"))[2]
    assert (skipped.reason, skipped.skipped_by) == (f"D-{jobs[0]} failed", jobs[0])
    (added,) = await add(rt, owner, 1)
    assert await statuses(rt, added) == ["canceled"]


async def test_a_claimed_job_of_a_group_that_stops_cannot_start(
    rt: Runtime, owner: Actor, make: Factory
) -> None:
    jobs = await add(rt, owner, 2, kind="parallel")
    worker = rt.claim(make.worker, ("q",))
    running, claimed = await worker.exchange([], types=["noop"], free=1, ahead=1)
    assert await statuses(rt, *jobs) == ["running", "claimed"]
    await fail(rt, running)
    assert await statuses(rt, *jobs) == ["failed", "canceled"]
    assert await worker.start([claimed.lease]) == []
    await worker.release_claims([claimed.lease], "shutdown")
    assert await statuses(rt, claimed.number) == ["canceled"]
    assert [run.status for run in await rt.read_model.runs(claimed.number)] == [RunStatus.SKIPPED]


async def test_a_parallel_group_that_continues_runs_all(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    await add(rt, owner, 1, kind="parallel", on_failure="continue")
    running = await claim(conn, make)
    later = await add(rt, owner, 1)
    await fail(rt, running[0])
    assert await numbers(conn, make) == later


async def test_a_job_of_a_group_waits_for_its_other_parents_too(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    parent = await make.queued(queue="q")
    first = await rt.submissions.submit(
        invocation(**Q, group={"name": "g", "kind": "sequential"}, after=(parent,)), owner
    )
    second = await rt.submissions.submit(
        invocation(**Q, group="g", after=(parent, first.number), on="any"), owner
    )
    for expected in (parent, first.number):
        works = await claim(conn, make)
        assert [work.number for work in works] == [expected]
        if expected == parent:
            await complete(rt, works)
    await fail(rt, works[0])  # `on` of the request counts for a parent that it names
    assert await numbers(conn, make) == [second.number]


@pytest.mark.parametrize("kind", ["parallel", "sequential"])
async def test_a_retry_of_the_failed_job_takes_the_skipped_jobs_along(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection, kind: str
) -> None:
    (failed,) = await add(rt, owner, 1, kind=kind)
    works = await claim(conn, make)
    skipped = await add(rt, owner, 2)
    await fail(rt, works[0])
    assert await statuses(rt, *skipped) == ["canceled", "canceled"]
    retry = await rt.job_control.retry(failed, owner)
    members = await rt.workflows.groups.members("g")
    assert [item.ordinal for item in members] == [1, 2, 3]
    assert members[0].number == retry.number
    assert await progress(rt) == ("running", "0 of 3 succeeded, 3 waiting")
    while works := await claim(conn, make):
        assert len(works) == (3 if kind == "parallel" else 1)
        await complete(rt, works)
    assert await progress(rt) == ("succeeded", "3 of 3 succeeded")


async def test_a_retry_that_fails_again_stops_the_group_again(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    (failed,) = await add(rt, owner, 1, kind="parallel")
    await fail(rt, (await claim(conn, make))[0])
    await rt.job_control.retry(failed, owner)
    works = await claim(conn, make)
    (later,) = await add(rt, owner, 1)
    assert await statuses(rt, later) == ["queued"]
    await fail(rt, works[0])
    assert await statuses(rt, later) == ["canceled"]


@pytest.mark.parametrize("kind", ["parallel", "sequential"])
async def test_a_canceled_group_cancels_all_and_what_is_added_later(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection, kind: str
) -> None:
    jobs = await add(rt, owner, 1, kind=kind, on_failure="continue")
    await complete(rt, await claim(conn, make))
    jobs += await add(rt, owner, 1)
    works = await claim(conn, make)
    jobs += await add(rt, owner, 2)
    results = await rt.job_control.cancel_group("g", owner, "wrong")
    assert [(r.number, r.requested) for r in results] == [
        (jobs[1], True), (jobs[2], False), (jobs[3], False)
    ]  # fmt: skip
    assert (await rt.read_model.job(jobs[3])).cancel_requested_by == owner.name
    (added,) = await add(rt, owner, 1)
    assert await statuses(rt, added) == ["canceled"]
    assert (await rt.workflows.groups.members("g"))[-1].reason == "the group g was canceled"
    assert (await progress(rt))[0] == "running"
    await rt.job_control.cancel(jobs[1], owner, force=True)
    group = await rt.workflows.groups.get("g")
    assert (group.state, group.cancel_reason) == ("canceled", "wrong")
    assert works
    with pytest.raises(Refused, match="all jobs of the group 'g' have ended"):
        await rt.job_control.cancel_group("g", owner)


async def test_a_stopping_group_that_is_canceled_names_the_person(
    rt: Runtime, owner: Actor, make: Factory
) -> None:
    jobs = await add(rt, owner, 3, kind="parallel")
    await rt.job_control.cancel_group("g", owner)
    for number in jobs:
        assert (await rt.read_model.job(number)).cancel_requested_by == owner.name
    assert (await progress(rt))[0] == "canceled"


async def test_a_group_of_another_kind_and_an_unknown_group_are_refused(
    rt: Runtime, owner: Actor
) -> None:
    with pytest.raises(NotFound, match="there is no group 'g'; to create it, use --parallel or"):
        await add(rt, owner, 1)
    await add(rt, owner, 1, kind="parallel")
    with pytest.raises(UsageError, match="the group 'g' is parallel, not sequential"):
        await add(rt, owner, 1, kind="sequential")
    with pytest.raises(UsageError, match="on_failure of the group 'g' is stop, not continue"):
        await add(rt, owner, 1, kind="parallel", on_failure="continue")
    assert (await rt.workflows.groups.get("g")).total == 1
    with pytest.raises(UsageError, match="on_failure needs a kind"):
        invocation(**Q, group={"name": "g", "on_failure": "stop"})
    with pytest.raises(UsageError, match="use group or unique, not both"):
        invocation(**Q, group="g", unique={"seconds": 60})


async def test_a_repeated_request_keeps_its_group(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    plain = await rt.submissions.submit(invocation(**Q, key="k"), owner)
    request = invocation(**Q, key="k", group={"name": "g", "kind": "parallel"})
    again = await rt.submissions.submit(request, owner)
    assert (again.number, again.outcome) == (plain.number, "deduplicated")
    assert await rt.workflows.groups.of_job(plain.number) is None
    assert await numbers(conn, make) == [plain.number]


async def test_lists_of_groups_and_jobs_of_a_group(rt: Runtime, owner: Actor) -> None:
    assert await rt.workflows.groups.all() == []
    jobs = await add(rt, owner, 3, kind="sequential")
    await add(rt, owner, 1, name="h", kind="parallel")
    assert [group.name for group in await rt.workflows.groups.all()] == ["h", "g"]
    listed = await rt.read_model.jobs(group="g")
    assert [job.number for job in listed] == jobs[::-1]
    listed = await rt.read_model.jobs(group="g", limit=1, before=jobs[2])
    assert [job.number for job in listed] == [jobs[1]]
    assert await rt.read_model.jobs(group="g", statuses=[Status.FAILED]) == []
    assert await rt.read_model.jobs(group="x") == []
    with pytest.raises(NotFound, match="there is no group 'gg'; did you mean g"):
        await rt.workflows.groups.get("gg")
    group = await rt.workflows.groups.of_job(jobs[0])
    assert group is not None
    assert group.name == "g"


async def test_a_job_without_a_group_has_no_row_and_no_children(
    rt: Runtime, owner: Actor, conn: Connection
) -> None:
    job = await rt.submissions.submit(invocation(**Q), owner)
    assert await rows(conn, "SELECT FROM draftsman.job_group_members") == []
    marked: list[Any] = await rows(
        conn, f"SELECT has_children FROM draftsman.job_states WHERE number = {job.number}"
    )
    assert marked == [(False,)]
