"""Job groups."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.workflows import store as workflows
from tests.soak.calls.call import MISSING, Call
from tests.soak.calls.claim import NO_LIMITS
from tests.soak.calls.dependencies import ME


async def _grouped(conn: Connection) -> tuple[int, list[int]]:
    """Add two jobs to a parallel group; return group and jobs."""
    opened = await workflows.open_group(conn, "soak", "parallel", "stop", "soak")
    assert opened is not None
    request = invocation(type="noop", group="soak")
    columns = [row(request, ME, NO_LIMITS) for _ in range(2)]
    jobs = sorted(job.number for job in await submissions.submit(conn, columns, "soak"))
    added = await workflows.add_members(conn, opened.id, jobs, [], is_operator=True)
    assert [item.skipped for item in added] == [False, False]
    return opened.id, jobs


async def _read(conn: Connection) -> None:
    group, jobs = await _grouped(conn)
    (listed,) = await workflows.groups(conn, 1, name="soak")
    assert (listed.total, listed.waiting, len(listed.invokers)) == (2, 2, 1)
    assert len(await workflows.groups(conn, 1)) == 1
    assert len(await workflows.groups(conn, 1, job=jobs[0])) == 1
    assert len(await workflows.members(conn, group, 0, 10)) == 2
    assert await workflows.numbers(conn, "soak", MISSING, 1) == jobs[1:]
    await workflows.inherit_group(conn, jobs[0], jobs[1])


async def _cancel(conn: Connection) -> None:
    group, jobs = await _grouped(conn)
    assert await workflows.cancel_group(conn, group, "soak", "no") == [(job, False) for job in jobs]


async def _stop(conn: Connection) -> None:
    group, jobs = await _grouped(conn)
    await job_store.cancel_now(conn, jobs[0], "soak", "no")
    second = (await workflows.members(conn, group, 1, 10))[0]
    assert second.skipped_by == jobs[0]
    assert await workflows.causes(conn, jobs[1]) == jobs[:1]


_READ: Final = Call(_read)
CALLS: Final[dict[str, Call]] = {
    "workflows.open_group": Call(_grouped),
    "workflows.add_members": Call(_grouped),
    "workflows.inherit_group": _READ,
    "workflows.groups": _READ,
    "workflows.members": _READ,
    "workflows.numbers": _READ,
    "workflows.cancel_group": Call(_cancel),
    "workflows.causes": Call(_stop),
    "jobs.cancel_now: a member of a group": Call(_stop),
}
