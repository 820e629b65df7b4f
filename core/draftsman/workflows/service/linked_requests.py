"""Links of new jobs: their parents and groups, in the transaction of their submission."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from draftsman.database.database import Connection
from draftsman.errors import LostRace, NotFound, OptionHint, UsageError
from draftsman.ids import unknown_job
from draftsman.jobs.job import Condition, OnFailure
from draftsman.jobs.requests.service.submissions import LinkedRequest
from draftsman.jobs.runs.store import jobs as existing
from draftsman.workflows import store
from draftsman.workflows.store import Link


class RequestLinks:
    """The links of the jobs of a batch of requests, as `Submissions` needs them."""

    async def require_jobs(self, conn: Connection, jobs: Collection[int]) -> None:
        """Raise NotFound unless all of these jobs exist."""
        if jobs and (number := await existing.missing(conn, jobs)) is not None:
            raise unknown_job(number)

    async def link(self, conn: Connection, requests: Sequence[LinkedRequest]) -> set[int]:
        """Let the new jobs wait for their parents, and add them to their groups.

        Parents are before their children. Return the jobs that were canceled at once. Raises
        LostRace for a parent that is younger than the job, and NotFound and UsageError for a group.
        """
        links = {request.job: _links(request) for request in requests if request.is_new}
        canceled = await _add_to_groups(conn, requests, links)
        pending = [link for job, of_job in links.items() if job not in canceled for link in of_job]
        if pending:
            canceled |= await store.link(conn, pending)
        return canceled


def _links(request: LinkedRequest) -> list[Link]:
    """Return a link to each parent of a new job, once; raises LostRace for a younger parent."""
    parents = dict.fromkeys(request.parents)
    if any(parent >= request.job for parent in parents):  # created meanwhile, with the same key
        raise LostRace("another request with the same key was committed meanwhile; try again")
    return [Link(request.job, parent, request.invocation.on) for parent in parents]


async def _add_to_groups(
    conn: Connection, requests: Sequence[LinkedRequest], links: dict[int, list[Link]]
) -> set[int]:
    """Add the new jobs to their groups; return those that were canceled at once.

    Adds to `links` the job before each job of a sequential group, unless the request names it.
    """
    members: dict[str, list[LinkedRequest]] = {}
    for request in requests:
        if (group := request.invocation.group) is not None:
            members.setdefault(group.name, []).append(request)
    canceled = set()
    for name, group_requests in sorted(members.items()):
        opened = await _open_group(conn, name, group_requests)
        jobs = sorted({request.job for request in group_requests} & links.keys())
        if not jobs:
            continue
        condition = Condition.SUCCESS if opened.on_failure is OnFailure.STOP else Condition.ANY
        with_parents = [job for job in jobs if links[job]]
        is_operator = all(request.is_operator for request in group_requests)
        added = await store.add_members(
            conn, opened.id, jobs, with_parents, is_operator=is_operator
        )
        for member in added:
            if member.skipped:
                canceled.add(member.job)
            elif member.parent is not None and all(
                member.parent != link.parent for link in links[member.job]
            ):
                links[member.job].append(Link(member.job, member.parent, condition))
    return canceled


async def _open_group(
    conn: Connection, name: str, requests: Sequence[LinkedRequest]
) -> store.OpenGroup:
    """Lock or create the group of these requests; raises NotFound and UsageError."""
    refs = [group for request in requests if (group := request.invocation.group) is not None]
    kind = next((ref.kind for ref in refs if ref.kind), None)
    on_failure = next((ref.on_failure for ref in refs if ref.on_failure), None)
    opened = await store.open_group(conn, name, kind, on_failure, requests[0].actor)
    if opened is None:
        kinds = OptionHint("parallel or --sequential", lead="to create it, use")
        raise NotFound(f"there is no group {name!r}", hint=kinds)
    for ref in refs:
        if ref.kind not in (None, opened.kind):
            raise UsageError(f"the group {name!r} is {opened.kind}, not {ref.kind}")
        if ref.on_failure not in (None, opened.on_failure):
            policies = f"{opened.on_failure}, not {ref.on_failure}"
            raise UsageError(f"on_failure of the group {name!r} is {policies}")
    return opened
