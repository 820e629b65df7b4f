"""Insertion of requests whose jobs wait for other jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from draftsman.domain.ids import unknown_job
from draftsman.domain.invocation import Invocation
from draftsman.domain.job import Status
from draftsman.domain.submit_result import SubmitResult
from draftsman.domain.workflows.batch_order import Parents, batch_order, parents_of
from draftsman.errors import LostRace
from draftsman.services.jobs.insertion import NewRequest, insert
from draftsman.store.postgres.database import Connection
from draftsman.store.scheduling import dependencies
from draftsman.store.scheduling.dependencies import Link


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
    if numbers and (number := await dependencies.missing(conn, numbers)) is not None:
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
    links = []
    for index in order:
        if complete[index].outcome == "created":
            links += _links(complete, index, plan)
    skipped = await dependencies.link(conn, links) if links else set()
    return [
        result._replace(status=Status.CANCELED) if result.number in skipped else result
        for result in complete
    ]


def _links(results: Sequence[SubmitResult], index: int, plan: Plan) -> list[Link]:
    """Return the parents of a new job, each once; raises LostRace for a younger parent."""
    job, condition = results[index].number, plan.requests[index].on
    numbers = dict.fromkeys(
        parent if isinstance(parent, int) else results[parent.index].number
        for parent in plan.parents[index]
    )
    if any(number >= job for number in numbers):  # created meanwhile, with the same key
        raise LostRace("another request with the same key was committed meanwhile; try again")
    return [Link(job, number, condition) for number in numbers]
