"""Order of the requests of a batch, which may repeat each other or wait for each other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from draftsman.errors import UsageError
from draftsman.formats.near_names import did_you_mean
from draftsman.jobs.requests.invocation import Invocation

SHOWN_NAMES = 10
"""Maximum number of names in a message."""


@dataclass(frozen=True, slots=True)
class BatchParent:
    """A parent that is a request of the same batch, by its index."""

    index: int


Parents = list[int | BatchParent]
"""The parents of a request: numbers of jobs, and requests of the batch."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The requests of a batch to insert, and those that repeat or follow others, by index."""

    order: Sequence[int]
    """The requests to insert, parents before their children."""
    repeated: Mapping[int, int]
    """The requests with the key of an earlier request, and the index of the first with this key."""
    parents: Sequence[Parents]
    is_linked: bool
    """Whether a request has a name, a parent or a group: then all jobs are created, or none."""

    @property
    def parent_jobs(self) -> set[int]:
        """The existing jobs that the requests name as parents."""
        return {parent for named in self.parents for parent in named if isinstance(parent, int)}


def plan_batch(requests: Sequence[Invocation]) -> BatchPlan:
    """Return the plan of a batch; raises UsageError for its names and parents."""
    repeated = same_keys(requests)
    is_linked = any(request.after or request.name or request.group for request in requests)
    if is_linked:
        parents = parents_of(requests)
        order = batch_order(requests, parents)
    else:
        parents = []
        order = list(range(len(requests)))
    return BatchPlan(
        order=[index for index in order if index not in repeated],
        repeated=repeated,
        parents=parents,
        is_linked=is_linked,
    )


def same_keys(requests: Sequence[Invocation]) -> dict[int, int]:
    """Return the requests with the key of an earlier request, and the index of the first.

    Requests with a subject or a unique key are left out: they may join another job.
    """
    firsts: dict[tuple[str, str], int] = {}
    repeated = {}
    for index, request in enumerate(requests):
        if request.key is None or request.subject_key is not None or request.unique is not None:
            continue
        first = firsts.setdefault((request.type, request.key), index)
        if first != index:
            repeated[index] = first
    return repeated


def parents_of(requests: Sequence[Invocation]) -> list[Parents]:
    """Return the parents of each request; raises UsageError for an unknown or repeated name."""
    names: dict[str, int] = {}
    for index, request in enumerate(requests):
        if request.name is not None and names.setdefault(request.name, index) != index:
            raise _error(requests, index, f"name {request.name!r} was already used in this batch")
    all_parents: list[Parents] = []
    for index, request in enumerate(requests):
        parents: Parents = []
        for parent in request.after:
            if isinstance(parent, int):
                parents.append(parent)
            elif parent in names:
                parents.append(BatchParent(names[parent]))
            else:
                raise _error(requests, index, _unknown(parent, list(names)))
        all_parents.append(parents)
    return all_parents


def batch_order(requests: Sequence[Invocation], parents: Sequence[Parents]) -> list[int]:
    """Return the indexes of the requests, parents first; raises UsageError for a cycle."""
    children: list[list[int]] = [[] for _ in requests]
    waits = [0] * len(requests)
    for index, parents_of_request in enumerate(parents):
        for parent in parents_of_request:
            if isinstance(parent, BatchParent):
                children[parent.index].append(index)
                waits[index] += 1
    if all(
        parent.index < index
        for index, parents_of_request in enumerate(parents)
        for parent in parents_of_request
        if isinstance(parent, BatchParent)
    ):
        return list(range(len(requests)))
    order = [index for index, count in enumerate(waits) if not count]
    for index in order:  # grows meanwhile
        for child in children[index]:
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    if len(order) < len(requests):
        waiting = {index for index, count in enumerate(waits) if count}
        cycle = _cycle(parents, waiting)
        names = " -> ".join(requests[index].name or "?" for index in cycle)
        raise UsageError(f"after: these requests wait for each other: {names}")
    return order


def _cycle(parents: Sequence[Parents], waiting: set[int]) -> list[int]:
    """Return the indexes of a cycle among these requests, the first again at the end."""
    path: list[int] = []
    index = min(waiting)
    while index not in path:
        path.append(index)
        index = next(
            parent.index
            for parent in parents[index]
            if isinstance(parent, BatchParent) and parent.index in waiting
        )
    return [*path[path.index(index) :], index][::-1]


def _unknown(name: str, names: Sequence[str]) -> str:
    hint = did_you_mean(name, names, 1)
    if not hint:
        ellipsis = ", …" if len(names) > SHOWN_NAMES else ""
        hint = f"; names: {', '.join(names[:SHOWN_NAMES]) or 'none'}{ellipsis}"
    return f"after {name!r}: no request of this batch has this name{hint}"


def _error(requests: Sequence[Invocation], index: int, problem: str) -> UsageError:
    if len(requests) == 1:
        return UsageError(problem)
    return UsageError(f"request {index + 1}: {problem}")
