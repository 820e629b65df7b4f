"""Workflows by processes with database roles of their own."""

from __future__ import annotations

import pytest

from draftsman.errors import Failure, Refused
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.outcome import Done
from draftsman.people.actor import Actor
from draftsman.workflows import store as workflows
from draftsman_testing.factories import Factory
from tests.core.rights.conftest import As


async def test_each_role_can_run_its_part_of_a_workflow(as_role: As) -> None:
    anna = await as_role("anna")
    worker = await as_role("worker")
    batch = [
        invocation(type="noop", queue="q", name="a"),
        invocation(type="noop", queue="q", after=("a",)),
        invocation(type="noop", queue="q", after=("a",), on="failure"),
    ]
    jobs = await anna.submissions.submit_many(batch, await anna.actor())
    make = Factory(worker, await worker.actor())
    work = await make.running(jobs[0].number)
    spawned = await worker.workflows.spawn(work, "part", "noop", {"queue": "q"})
    assert (await anna.read_model.job(spawned)).invoker_id == work.invoker_id
    assert await worker.workflows.gather(work, [spawned]) is None
    await worker.settlement.outcome(await make.running(spawned), Done())
    again = await make.running(work.number)
    await worker.settlement.failure(again, Failure("broken", declared="PERMANENT"))
    skipped = await anna.read_model.job(jobs[1].number)
    assert (skipped.status, skipped.cancel_requested_by) == (Status.CANCELED, "system")
    events = await anna.read_model.job_events(skipped.number)
    assert (events[-1].kind, events[-1].actor) == ("job_canceled", "system")
    retry = await anna.job_control.retry(work.number, await anna.actor())
    assert (await anna.workflows.tree(retry.number)).total == 2
    canceled = await anna.job_control.cancel_tree(retry.number, await anna.actor())
    assert len(canceled) == 2
    violations = await anna.read_model.invariants()
    assert {name: rows for name, rows in violations.items() if rows} == {}


async def test_a_worker_spawns_only_for_a_job_that_runs(as_role: As) -> None:
    anna = await as_role("anna")
    worker = await as_role("worker")
    make = Factory(worker, await worker.actor())
    other = await anna.submissions.submit(invocation(type="noop"), await anna.actor())
    request = invocation(type="noop", queue="q")
    job = await anna.submissions.submit(request, await anna.actor())
    work = await make.running(job.number)
    with pytest.raises(Refused, match="did not spawn"):
        async with worker.db.transaction() as conn:
            await workflows.record_spawn(conn, work.lease, other.number)
    await worker.settlement.outcome(work, Done())
    actor = Actor(Source.INTERNAL, work.invoker_id, "")
    values = row(request, actor, worker.limits) | {"invoker_id": work.invoker_id}
    values |= {"idempotency_key": f"spawn:{work.number}:late"}
    with pytest.raises(Refused, match="may not submit a job"):
        async with worker.db.transaction() as conn:
            await submissions.submit(conn, [values], f"internal:{work.name}")


async def test_a_person_gives_parents_to_own_jobs_only(as_role: As) -> None:
    anna = await as_role("anna")
    carol = await as_role("carol")
    parent = await anna.submissions.submit(invocation(type="noop"), await anna.actor())
    child = invocation(type="noop", after=(parent.number,))
    job = await anna.submissions.submit(child, await anna.actor())
    link = workflows.Link(job.number, parent.number, child.on)
    with pytest.raises(Refused, match="may not control"):
        async with carol.db.transaction() as conn:
            await workflows.link(conn, [link])
