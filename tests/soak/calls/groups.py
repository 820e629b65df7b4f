"""Job groups."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.store import locked_jobs
from draftsman.workflows.store import dependencies, groups
from tests.soak.calls.call import MISSING, Call
from tests.soak.calls.claim import NO_LIMITS
from tests.soak.calls.dependencies import ME


async def _grouped(conn: Connection) -> tuple[int, list[int]]:
    """Add two jobs to a parallel group; return group and jobs."""
    opened = await groups.open_group(conn, "soak", "parallel", "stop", "soak")
    assert opened is not None
    request = invocation(type="noop", group="soak")
    columns = [row(request, ME, NO_LIMITS) for _ in range(2)]
    jobs = sorted(job.number for job in await submissions.submit(conn, columns, "soak"))
    added = await groups.add(conn, opened.id, jobs, [], is_operator=True)
    assert [item.skipped for item in added] == [False, False]
    return opened.id, jobs


async def _read(conn: Connection) -> None:
    group, jobs = await _grouped(conn)
    (listed,) = await groups.groups(conn, 1, name="soak")
    assert (listed.total, listed.waiting, len(listed.invokers)) == (2, 2, 1)
    assert len(await groups.groups(conn, 1)) == 1
    assert len(await groups.groups(conn, 1, job=jobs[0])) == 1
    assert len(await groups.members(conn, group, 0, 10)) == 2
    assert await groups.numbers(conn, "soak", MISSING, 1) == jobs[1:]
    await groups.inherit(conn, jobs[0], jobs[1])


async def _cancel(conn: Connection) -> None:
    group, jobs = await _grouped(conn)
    assert await groups.cancel(conn, group, "soak", "no") == [(job, False) for job in jobs]


async def _stop(conn: Connection) -> None:
    group, jobs = await _grouped(conn)
    await locked_jobs.cancel_now(conn, jobs[0], "soak", "no")
    second = (await groups.members(conn, group, 1, 10))[0]
    assert second.skipped_by == jobs[0]
    assert await dependencies.causes(conn, jobs[1]) == jobs[:1]


_READ: Final = Call(_read)
CALLS: Final[dict[str, Call]] = {
    "groups.open_group": Call(_grouped),
    "groups.add": Call(_grouped),
    "groups.inherit": _READ,
    "groups.groups": _READ,
    "groups.members": _READ,
    "groups.numbers": _READ,
    "groups.cancel": Call(_cancel),
    "dependencies.causes": Call(_stop),
    "locked_jobs.cancel_now: a member of a group": Call(_stop),
}
