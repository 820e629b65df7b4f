"""Failures that need a person, until they are retried or dismissed."""

from __future__ import annotations

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Failure, Refused
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import event_kinds
from tests.support.statements import rows


async def open_failures(rt: Runtime) -> list[int]:
    """Return the open failures, which the counts and the list agree on."""
    jobs = [job.number for job in await rt.read_model.jobs(failures=True)]
    assert sum((await rt.read_model.open_failures()).values()) == len(jobs)
    assert {job.number for job in await rt.read_model.jobs() if job.failure_open} == set(jobs)
    assert not any((await rt.read_model.invariants()).values())
    return jobs


async def test_a_failure_is_open_until_it_is_dismissed(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    dead, failed = await make.dead(), await make.failed()
    assert await open_failures(rt) == [failed, dead]
    assert await rt.read_model.open_failures() == {"failed": 1, "dead_letter": 1}
    result = await rt.job_control.dismiss(dead, make.owner, " fixed upstream ")
    assert (result.changed, str(result.dismissal)) == (True, "by root: fixed upstream")
    assert await open_failures(rt) == [failed]
    assert (await event_kinds(rt, dead))[-1] == "job_dismissed"
    again = await rt.job_control.dismiss(dead, make.owner, "because")
    assert (again.changed, str(again.dismissal)) == (False, "by root: fixed upstream")
    assert (await event_kinds(rt, dead)).count("job_dismissed") == 1
    assert len(await rows(conn, "SELECT FROM draftsman.dismissals")) == 1
    (job,) = await rt.read_model.jobs(numbers=[dead])
    assert (job.failure_open, job.dismissed_by, job.dismissal_reason) == (
        False,
        "cli:root",
        "fixed upstream",
    )
    await rt.job_control.undismiss(dead, make.owner)
    assert await open_failures(rt) == [failed, dead]
    with pytest.raises(Refused, match="is not dismissed"):
        await rt.job_control.undismiss(dead, make.owner)


async def test_a_retry_stands_for_the_failure(rt: Runtime, make: Factory) -> None:
    dead = await make.dead()
    first = (await rt.job_control.retry(dead, make.owner)).number
    assert await open_failures(rt) == []
    with pytest.raises(Refused, match=f"D-{dead} was retried as D-{first}; nothing to dismiss"):
        await rt.job_control.dismiss(dead, make.owner)
    assert (
        await rt.settlement.failure(await make.running(first), Failure("x", declared="PERMANENT"))
        is Status.FAILED
    )
    assert await open_failures(rt) == [first]
    await rt.job_control.dismiss(first, make.owner)
    second = (await rt.job_control.retry(first, make.owner)).number
    await rt.job_control.undismiss(first, make.owner)
    assert await open_failures(rt) == []
    await rt.job_control.cancel(second, make.owner)
    assert await open_failures(rt) == []


async def test_only_an_open_failure_is_dismissed(rt: Runtime, make: Factory) -> None:
    queued = await make.queued()
    with pytest.raises(Refused, match="is queued, not failed; nothing to dismiss"):
        await rt.job_control.dismiss(queued, make.owner)
    await rt.job_control.cancel(queued, make.owner)
    with pytest.raises(Refused, match="is canceled, not failed; nothing to dismiss"):
        await rt.job_control.dismiss(queued, make.owner)
