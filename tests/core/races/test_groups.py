"""Additions to groups, ends of members and cancels in two sessions."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.queues.test_queues import claim
from tests.core.races.test_dependencies import end
from tests.support.races import FirstSession

KINDS = pytest.mark.parametrize("kind", ["parallel", "sequential"])


async def add(rt: Runtime, owner: Actor, kind: str, on_failure: str = "stop") -> SubmittedJob:
    """Add a job to the group."""
    group = {"name": "g", "kind": kind, "on_failure": on_failure}
    return await rt.submissions.submit(invocation(type="noop", queue="q", group=group), owner)


@KINDS
async def test_a_job_that_is_added_while_a_member_fails_is_skipped(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, kind: str
) -> None:
    await add(rt, owner, kind)
    (work,) = await claim(conn, make)
    async with first.doing(end(first.rt, work, failed=True)):
        job = await first.then(add(rt, owner, kind), conn)
    assert job.status is Status.CANCELED
    assert await claim(conn, make) == []


@KINDS
async def test_a_member_that_fails_while_a_job_is_added_skips_it(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, kind: str
) -> None:
    await add(rt, owner, kind)
    (work,) = await claim(conn, make)
    async with first.doing(add(first.rt, owner, kind)) as added:
        await first.then(end(rt, work, failed=True), conn)
    assert (await rt.read_model.job(added.result().number)).status is Status.CANCELED
    assert await claim(conn, make) == []


async def test_two_jobs_that_are_added_at_once_are_in_a_row(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    await add(rt, owner, "sequential")
    async with first.doing(add(first.rt, owner, "sequential")) as second:
        third = await first.then(add(rt, owner, "sequential"), conn)
    members = await rt.workflows.groups.members("g")
    assert [item.number for item in members][1:] == [second.result().number, third.number]
    (parent,) = await rt.workflows.parents(third.number)
    assert parent.number == second.result().number


async def test_a_group_that_two_requests_create_is_a_single_group(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection
) -> None:
    async with first.doing(add(first.rt, owner, "parallel")):
        await first.then(add(rt, owner, "parallel"), conn)
    (group,) = await rt.workflows.groups.all()
    assert group.total == 2


async def test_a_cancel_waits_for_the_end_of_a_member_that_releases_the_next(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await add(rt, owner, "sequential")
    later = await add(rt, owner, "sequential")
    (work,) = await claim(conn, make)
    async with first.doing(end(first.rt, work)):
        results = await first.then(rt.job_control.cancel_group("g", owner), conn)
    assert [item.number for item in results] == [later.number]
    assert await claim(conn, make) == []


async def test_the_end_of_a_member_waits_for_a_cancel_of_its_group(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await add(rt, owner, "sequential")
    later = await add(rt, owner, "sequential")
    (work,) = await claim(conn, make)
    async with first.doing(first.rt.job_control.cancel_group("g", owner)):
        await first.then(end(rt, work), conn)
    job = await rt.read_model.job(later.number)
    assert (job.status, job.cancel_requested_by) == (Status.CANCELED, owner.name)


@KINDS
async def test_a_job_that_is_added_while_the_group_is_canceled_is_canceled(
    rt: Runtime, first: FirstSession, owner: Actor, conn: Connection, kind: str
) -> None:
    await add(rt, owner, kind, "continue")
    async with first.doing(first.rt.job_control.cancel_group("g", owner)):
        job = await first.then(add(rt, owner, kind, "continue"), conn)
    assert job.status is Status.CANCELED


@KINDS
async def test_a_cancel_waits_for_an_addition_and_cancels_its_job(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection, kind: str
) -> None:
    await add(rt, owner, kind, "continue")
    async with first.doing(add(first.rt, owner, kind, "continue")) as added:
        results = await first.then(rt.job_control.cancel_group("g", owner), conn)
    assert [item.number for item in results][1:] == [added.result().number]
    assert await claim(conn, make) == []


async def test_a_member_that_fails_waits_for_the_start_of_a_claimed_job_which_continues(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await add(rt, owner, "parallel")
    later = await add(rt, owner, "parallel")
    worker = first.rt.claim(make.worker, ("q",))
    running, claimed = await rt.claim(make.worker, ("q",)).exchange(
        [], types=["noop"], free=1, ahead=1
    )
    async with first.doing(worker.start([claimed.lease])) as started:
        await first.then(end(rt, running, failed=True), conn)
    assert [work.number for work in started.result()] == [later.number]
    assert (await rt.read_model.job(later.number)).status is Status.RUNNING


async def test_the_start_of_a_claimed_job_waits_for_a_member_that_fails_and_does_not_happen(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    await add(rt, owner, "parallel")
    later = await add(rt, owner, "parallel")
    worker = rt.claim(make.worker, ("q",))
    running, claimed = await worker.exchange([], types=["noop"], free=1, ahead=1)
    async with first.doing(end(first.rt, running, failed=True)):
        assert await first.then(worker.start([claimed.lease]), conn) == []
    assert (await rt.read_model.job(later.number)).status is Status.CANCELED


async def test_a_cancel_waits_for_a_retry_and_cancels_it(
    rt: Runtime, first: FirstSession, make: Factory, owner: Actor, conn: Connection
) -> None:
    failed = await add(rt, owner, "parallel", "continue")
    (work,) = await claim(conn, make)
    await end(rt, work, failed=True)
    later = await add(rt, owner, "parallel", "continue")
    async with first.doing(first.rt.job_control.retry(failed.number, owner)) as retried:
        results = await first.then(rt.job_control.cancel_group("g", owner), conn)
    assert [item.number for item in results] == [later.number, retried.result().number]
