"""Jobs that two sessions submit for the same job at the same time."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.workflows import store as workflows
from draftsman_testing.factories import Factory
from tests.support.races import FirstSession
from tests.support.statements import value

COUNT = "SELECT count(*) FROM draftsman.job_requests WHERE idempotency_key LIKE 'spawn:%%'"


async def test_two_submissions_at_once_cannot_exceed_the_limit_of_an_agents_job(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    work = await make.running()
    for number in range(19):
        await rt.workflows.spawn(work, f"mcp:{number}", "noop", {})
    async with first.doing(first.rt.workflows.spawn(work, "mcp:a", "noop", {})) as last:
        with pytest.raises(Refused, match=f"{work.name} has submitted 20 jobs"):
            await first.then(rt.workflows.spawn(work, "mcp:b", "noop", {}), conn)
    assert await value(conn, COUNT) == 20
    again = await rt.workflows.spawn(work, "mcp:a", "noop", {})
    assert again == last.result(), "the same key is the same job"
    assert await rt.workflows.spawn(work, "handler", "noop", {}) > again, "handlers have no limit"


async def test_sessions_that_record_the_jobs_of_an_agent_themselves_count_one_after_another(
    make: Factory, rt: Runtime, first: FirstSession, conn: Connection
) -> None:
    """The function of the database holds the job, whether or not its caller did."""
    work = await make.running()
    for number in range(19):
        await rt.workflows.spawn(work, f"mcp:{number}", "noop", {})
    numbers = [await _submitted(rt, work, key) for key in ("mcp:a", "mcp:b")]
    async with first.doing(_record(first.rt, work, numbers[0])):
        with pytest.raises(Refused, match=f"{work.name} has submitted 20 jobs"):
            await first.then(_record(rt, work, numbers[1]), conn)


async def _submitted(rt: Runtime, work: ClaimedJob, key: str) -> int:
    """Submit a job for a run without recording it."""
    actor = Actor(Source.INTERNAL, work.invoker_id, "")
    values = row(invocation(type="noop"), actor, rt.limits)
    values |= {"invoker_id": work.invoker_id, "idempotency_key": f"spawn:{work.number}:{key}"}
    async with rt.db.transaction() as conn:
        (job,) = await submissions.submit(conn, [values], f"internal:{work.name}")
    return job.number


async def _record(rt: Runtime, work: ClaimedJob, job: int) -> None:
    async with rt.db.transaction() as conn:
        await workflows.record_spawn(conn, work.lease, job)


async def test_the_limit_is_that_of_the_job_and_not_of_its_run(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    for number in range(20):
        await rt.workflows.spawn(work, f"mcp:{number}", "noop", {})
    await rt.settlement.release_run(work, "shutdown")
    later = await make.running(work.number)
    with pytest.raises(Refused, match="the most that an agent may"):
        await rt.workflows.spawn(later, "mcp:more", "noop", {})
