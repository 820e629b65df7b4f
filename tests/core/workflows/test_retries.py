"""Retries of jobs that wait for other jobs, and results of parents in a handler."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, NotPermitted
from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.queues.test_queues import claim
from tests.core.worker.workers import running_worker, runtime_with
from tests.core.workflows.test_dependencies import fail, statuses, submit


async def flow(rt: Runtime, owner: Actor) -> list[int]:
    """Submit build, test, deploy after both, and a report on failure."""
    requests: list[dict[str, Any]] = [
        {"name": "build"},
        {"name": "test", "after": ["build"]},
        {"name": "deploy", "after": ["build", "test"]},
        {"name": "report", "after": ["test"], "on": "failure"},
    ]
    return [job.number for job in await submit(rt, owner, *requests)]


async def test_a_retry_takes_the_skipped_jobs_along(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    build, test, deploy, report = await flow(rt, owner)
    (work,) = await claim(conn, make)
    await fail(rt, work)
    assert await statuses(rt, test, deploy, report) == ["canceled", "canceled", "queued"]
    (work,) = await claim(conn, make)
    assert work.number == report
    retry = await rt.job_control.retry(build, owner)
    again = await rt.workflows.tree(retry.number)
    _, new_test, new_deploy = [job.number for job in again.jobs]
    assert [job.parents for job in again.jobs[1:]] == [
        [retry.number],
        [retry.number, new_test],
    ]
    assert (await rt.read_model.job(new_test)).retry_of == test
    for number in (retry.number, new_test, new_deploy):
        (work,) = await claim(conn, make)
        assert work.number == number
        await rt.settlement.outcome(work, Done())
    assert await claim(conn, make) == []
    same = await rt.job_control.retry(build, owner)
    assert (same.number, same.outcome) == (retry.number, "deduplicated")


async def test_a_retry_alone_leaves_them(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    build, *_ = await flow(rt, owner)
    (work,) = await claim(conn, make)
    await fail(rt, work)
    retry = await rt.job_control.retry(build, owner, alone=True)
    assert (await rt.workflows.tree(retry.number)).total == 1


async def test_a_retry_of_a_child_does_not_wait_for_parents_that_ended(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    build, test, *_ = await flow(rt, owner)
    (work,) = await claim(conn, make)
    await fail(rt, work)
    await claim(conn, make)
    retry = await rt.job_control.retry(test, owner)
    assert [parent.number for parent in await rt.workflows.parents(retry.number)] == [build]
    (work,) = await claim(conn, make)
    assert work.number == retry.number


async def test_a_retry_of_a_canceled_child_waits_for_the_other_parents(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    running = await make.running()
    child = await make.queued(queue="q", after=(running.number,))
    await rt.job_control.cancel(child, owner)
    retry = await rt.job_control.retry(child, owner)
    assert (await rt.read_model.why(retry.number)).reason == "parents"
    await rt.settlement.outcome(running, Done())
    assert [work.number for work in await claim(conn, make)] == [retry.number]


async def test_a_second_failed_parent_skips_the_retry_until_it_is_retried_too(
    rt: Runtime, make: Factory, owner: Actor, conn: Connection
) -> None:
    one = await make.running()
    two = await make.running()
    child = await make.queued(queue="q", after=(one.number, two.number))
    await fail(rt, one)
    await fail(rt, two)
    first = await rt.job_control.retry(one.number, owner)
    assert (await rt.workflows.tree(first.number)).jobs[1].status is Status.CANCELED
    second = await rt.job_control.retry(two.number, owner)
    last = (await rt.workflows.tree(second.number)).jobs[1]
    assert last.status is Status.QUEUED
    assert [parent.number for parent in await rt.workflows.parents(last.number)] == [
        first.number,
        second.number,
    ]
    for number in (first.number, second.number):
        await rt.settlement.outcome(await make.running(number), Done())
    assert [work.number for work in await claim(conn, make)] == [last.number]
    assert (await rt.read_model.job(child)).status is Status.CANCELED


async def test_a_skipped_job_of_another_person_is_retried_by_an_operator_only(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.running(actor=people.anna)
    await make.queued(after=(work.number,))
    await fail(rt, work)
    with pytest.raises(NotPermitted):
        await rt.job_control.retry(work.number, people.anna)
    retry = await rt.job_control.retry(work.number, people.anna, alone=True)
    assert retry.outcome == "created"


async def test_a_lost_job_with_a_new_job_takes_its_children_along(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    dead = await make.worker_row(queues=["q"])
    work = await make.running(on_lost="new_job", worker=dead)
    child = await make.queued(queue="q", after=(work.number,))
    await conn.execute(
        "UPDATE draftsman.job_runs SET heartbeat_at = heartbeat_at - interval '1 day'"
    )
    await conn.execute(
        "UPDATE draftsman.workers SET heartbeat_at = heartbeat_at - interval '1 day'"
    )
    await rt.dead_workers.rescue(LeaderTerm())
    assert (await rt.read_model.job(child)).status is Status.CANCELED
    chain = await rt.read_model.chain(work.number)
    tree = await rt.workflows.tree(chain[-1].number)
    assert [job.status for job in tree.jobs] == [Status.QUEUED, Status.QUEUED]


async def test_a_handler_reads_the_results_of_its_parents(
    rt: Runtime, make: Factory, owner: Actor
) -> None:
    seen: list[Any] = []

    async def part(ctx: RunContext) -> Outcome:
        if ctx.job.payload["n"] == 2:
            raise Failure("broken", declared="PERMANENT")
        return Done({"n": ctx.job.payload["n"]})

    async def join(ctx: RunContext) -> Outcome:
        seen.extend(await ctx.parents())
        return Done({})

    names = ["b", "a", "c"]
    requests: list[dict[str, Any]] = [
        {"name": name, "type": "part", "payload": {"n": n}} for n, name in enumerate(names)
    ]
    jobs = await submit(
        rt, owner, *requests, {"type": "join", "after": ["a", "c", "b"], "on": "any"}
    )
    async with running_worker(
        runtime_with(rt), {"part": part, "join": join}, slots=4, queues=("q",)
    ):

        async def ended() -> bool:
            return (await rt.read_model.job(jobs[-1].number)).finished_at is not None

        await until(ended, "the end of the join")
    assert [(item.name, item.status, item.result, item.error) for item in seen] == [
        (jobs[1].name, Status.COMPLETED, {"n": 1}, None),
        (jobs[2].name, Status.FAILED, None, "broken"),
        (jobs[0].name, Status.COMPLETED, {"n": 0}, None),
    ]
