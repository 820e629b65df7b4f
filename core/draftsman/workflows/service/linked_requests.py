"""Insertion of requests whose jobs wait for other jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from draftsman.database.database import Connection
from draftsman.errors import LostRace, NotFound, UsageError
from draftsman.ids import unknown_job
from draftsman.jobs.job import Condition, Status
from draftsman.jobs.requests.invocation import GroupRef, Invocation, SubmitResult
from draftsman.jobs.requests.service.request_rows import NewRequest, insert
from draftsman.jobs.runs.store import jobs
from draftsman.workflows.batch_order import Parents, batch_order, parents_of
from draftsman.workflows.groups import OnFailure
from draftsman.workflows.store import dependencies, groups
from draftsman.workflows.store.dependencies import Link


class Plan(NamedTuple):
    """The parents of each request of a batch, and an order in which parents are first."""

    requests: Sequence[Invocation]
    parents: Sequence[Parents]
    order: Sequence[int]


def plan(requests: Sequence[Invocation]) -> Plan:
    """Return the plan of a batch; raises UsageError."""
    parents = parents_of(requests)
    return Plan(requests, parents, batch_order(requests, parents))


async def insert_linked(
    conn: Connection, plan: Plan, batch: Sequence[NewRequest], twins: Mapping[int, int]
) -> list[SubmitResult]:
    """Insert a whole batch in the transaction of the caller; `twins` repeat another request.

    A job that existed before keeps its own parents. Raises NotFound for a parent that does not
    exist, and LostRace if a request is being committed by another transaction.
    """
    numbers = {item for found in plan.parents for item in found if isinstance(item, int)}
    if numbers and (number := await jobs.missing(conn, numbers)) is not None:
        raise unknown_job(number)
    order = [index for index in plan.order if index not in twins]
    results: list[SubmitResult | None] = [None] * len(batch)
    for place, result in await insert(conn, [batch[index] for index in order]):
        results[order[place]] = result._replace(place=order[place])
    for index, first in twins.items():
        if (earlier := results[first]) is not None:
            results[index] = earlier._replace(place=index, outcome="deduplicated")
    complete = [result for result in results if result is not None]
    if len(complete) < len(batch):
        raise LostRace("another request with the same key or subject is being committed; try again")
    links = {
        complete[index].number: _links(complete, index, plan)
        for index in order
        if complete[index].outcome == "created"
    }
    skipped = set()
    if any(request.group for request in plan.requests):
        skipped = await _add_to_groups(conn, plan, batch, order, complete, links)
    if linked := [link for job, found in links.items() if job not in skipped for link in found]:
        skipped |= await dependencies.link(conn, linked)
    for index in order:
        parent = plan.requests[index].attachments_of
        if parent is not None and complete[index].outcome == "created":
            from draftsman.jobs.requests.store import attachments

            await attachments.inherit(conn, parent, complete[index].number)
    return [
        result._replace(status=Status.CANCELED) if result.number in skipped else result
        for result in complete
    ]


async def _add_to_groups(
    conn: Connection,
    plan: Plan,
    batch: Sequence[NewRequest],
    order: Sequence[int],
    results: Sequence[SubmitResult],
    links: dict[int, list[Link]],
) -> set[int]:
    """Add the new jobs to their groups; return those that were canceled at once.

    Adds to `links` the job before each job of a sequential group, unless the request names it.
    """
    members: dict[str, list[int]] = {}
    for index in order:
        if (group := plan.requests[index].group) is not None:
            members.setdefault(group.name, []).append(index)
    skipped = set()
    for name, indexes in sorted(members.items()):
        requested = [plan.requests[index].group for index in indexes]
        opened = await _open(conn, name, requested, batch[indexes[0]])
        jobs = sorted({results[index].number for index in indexes} & links.keys())
        if not jobs:
            continue
        condition = Condition.SUCCESS if opened.on_failure is OnFailure.STOP else Condition.ANY
        with_parents = [job for job in jobs if links[job]]
        is_operator = all(batch[index].is_operator for index in indexes)
        added = await groups.add(conn, opened.id, jobs, with_parents, is_operator=is_operator)
        for member in added:
            if member.skipped:
                skipped.add(member.job)
            elif member.parent is not None and all(
                member.parent != link.parent for link in links[member.job]
            ):
                links[member.job].append(Link(member.job, member.parent, condition))
    return skipped


async def _open(
    conn: Connection, name: str, requested: Sequence[GroupRef | None], request: NewRequest
) -> groups.OpenGroup:
    """Lock or create the group of these requests; raises NotFound and UsageError."""
    refs = [ref for ref in requested if ref is not None]
    kind = next((ref.kind for ref in refs if ref.kind), None)
    on_failure = next((ref.on_failure for ref in refs if ref.on_failure), None)
    opened = await groups.open_group(conn, name, kind, on_failure, request.actor)
    if opened is None:
        raise NotFound(
            f"there is no group {name!r}; to create it, say whether it is parallel or sequential"
        )
    for ref in refs:
        if ref.kind not in (None, opened.kind):
            raise UsageError(f"the group {name!r} is {opened.kind}, not {ref.kind}")
        if ref.on_failure not in (None, opened.on_failure):
            policies = f"{opened.on_failure}, not {ref.on_failure}"
            raise UsageError(f"on_failure of the group {name!r} is {policies}")
    return opened


def _links(results: Sequence[SubmitResult], index: int, plan: Plan) -> list[Link]:
    """Return the parents of a new job, each once; raises LostRace for a younger parent."""
    job = results[index].number
    condition = plan.requests[index].on
    numbers = dict.fromkeys(
        parent if isinstance(parent, int) else results[parent.index].number
        for parent in plan.parents[index]
    )
    if any(number >= job for number in numbers):  # created meanwhile, with the same key
        raise LostRace("another request with the same key was committed meanwhile; try again")
    return [Link(job, number, condition) for number in numbers]
