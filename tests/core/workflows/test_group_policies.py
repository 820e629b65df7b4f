"""Groups that stop or continue: which ends stop a group, and which of its jobs are skipped."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotPermitted
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Snooze
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.workflows import store as workflows
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.queues.test_queues import claim
from tests.core.workflows.test_dependencies import fail, statuses
from tests.core.workflows.test_groups import Q, add, complete, numbers, progress

STOP: dict[str, Any] = {"name": "g", "kind": "parallel"}


async def test_a_job_that_completes_stops_no_group(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    await add(rt, owner, 1, kind="parallel")
    works = await claim(conn, make)
    (later,) = await add(rt, owner, 1)
    assert await progress(rt) == ("running", "0 of 2 succeeded, 1 running, 1 waiting")
    await complete(rt, works)
    assert await statuses(rt, later) == ["queued"]


@pytest.mark.parametrize("status", ["canceled", "dead_letter", "expired"])
async def test_each_end_but_completed_stops_a_group_and_counts(
    rt: Runtime, make: Factory, status: str
) -> None:
    later = await make.queued(group=STOP)
    await make.job_in(Status(status), group="g")
    assert await statuses(rt, later) == ["canceled"]
    counted = ", 2 canceled" if status == "canceled" else ", 1 failed, 1 canceled"
    assert await progress(rt) == ("failed", f"0 of 2 succeeded{counted}")


async def test_a_job_that_has_run_continues_after_its_group_has_stopped(
    rt: Runtime, make: Factory
) -> None:
    snoozed = await make.running(group=STOP)
    await rt.settlement.outcome(snoozed, Snooze(60))
    failing = await make.running(group="g")
    await fail(rt, failing)
    assert await statuses(rt, snoozed.number) == ["scheduled"]
    assert not any((await rt.read_model.invariants()).values())


async def test_a_failure_with_a_child_stops_no_group_that_continues(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    (failing,) = await add(rt, owner, 1, kind="parallel", on_failure="continue")
    child = await make.queued(after=(failing,))
    (work,) = await claim(conn, make)
    later = await add(rt, owner, 1)
    await fail(rt, work)
    assert await statuses(rt, child, *later) == ["canceled", "queued"]
    added = await add(rt, owner, 1)
    assert not any((await rt.read_model.invariants()).values())
    assert await numbers(conn, make) == [*later, *added]


async def test_the_details_of_an_end_are_not_those_of_the_skipped_jobs(
    rt: Runtime, make: Factory
) -> None:
    lost = await make.running(group=STOP, on_lost="fail")
    skipped = await make.queued(group="g")
    assert await rt.dead_workers.rescue(LeaderTerm(), [make.worker]) == 1
    reason = {"reason": f"{lost.name} failed", "by": "system"}
    assert (await rt.read_model.job_events(skipped))[-1].payload == reason


async def test_a_job_of_a_parallel_group_waits_for_its_parents(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    parent = await make.queued(queue="q")
    job = await rt.submissions.submit(invocation(**Q, group=STOP, after=(parent,)), owner)
    works = await claim(conn, make)
    assert [work.number for work in works] == [parent]
    await complete(rt, works)
    assert await numbers(conn, make) == [job.number]


async def test_a_job_is_added_behind_the_last_place_of_a_group_with_a_retry(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    first, last = await add(rt, owner, 2, kind="sequential", on_failure="continue")
    await fail(rt, (await claim(conn, make))[0])
    await rt.job_control.retry(first, owner)
    (added,) = await add(rt, owner, 1)
    assert [item.number for item in await rt.workflows.parents(added)] == [last]
    works = await claim(conn, make)
    await fail(rt, next(work for work in works if work.number == last))
    assert not any((await rt.read_model.invariants()).values())


async def test_a_job_is_added_behind_the_retry_of_the_last_job(
    rt: Runtime, owner: Actor, make: Factory, conn: Connection
) -> None:
    (last,) = await add(rt, owner, 1, kind="sequential", on_failure="continue")
    await fail(rt, (await claim(conn, make))[0])
    retry = await rt.job_control.retry(last, owner)
    (added,) = await add(rt, owner, 1)
    assert [item.number for item in await rt.workflows.parents(added)] == [retry.number]


async def test_a_group_that_was_canceled_keeps_the_first_person_and_reason(
    rt: Runtime, owner: Actor, make: Factory, people: People
) -> None:
    await make.running(group=STOP)
    await rt.job_control.cancel_group("g", owner, "wrong version")
    await rt.job_control.cancel_group("g", people.olga, "again")
    group = await rt.workflows.groups.get("g")
    assert (group.canceled_by, group.cancel_reason) == (owner.name, "wrong version")


async def test_a_group_with_a_job_of_another_person_is_not_canceled(
    rt: Runtime, make: Factory, people: People, owner: Actor
) -> None:
    own = await make.queued(group=STOP, actor=people.anna)
    await rt.submissions.submit(invocation(type="noop", group="g"), owner)
    with pytest.raises(NotPermitted, match="may not cancel"):
        await rt.job_control.cancel_group("g", people.anna)
    assert await statuses(rt, own) == ["queued"]


async def test_the_list_of_a_group_continues_after_a_place(rt: Runtime, owner: Actor) -> None:
    jobs = await add(rt, owner, 3, kind="parallel")
    members = await rt.workflows.groups.members("g", after=1)
    assert [item.number for item in members] == jobs[1:]


async def test_only_a_retry_inherits_the_group_of_its_job(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    old = await make.queued(group=STOP)
    other = await make.queued()
    await workflows.inherit_group(conn, old, other)
    assert await rt.workflows.groups.of_job(other) is None
