"""Order of the requests of a batch that name each other as parents. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from draftsman.errors import UsageError
from draftsman.jobs.requests.invocation import Invocation

SHOWN_NAMES = 10
"""Maximum number of names in a message."""


@dataclass(frozen=True, slots=True)
class BatchParent:
    """A parent that is a request of the same batch, by its index."""

    index: int


Parents = list[int | BatchParent]
"""The parents of a request: numbers of jobs, and requests of the batch."""


def parents_of(requests: Sequence[Invocation]) -> list[Parents]:
    """Return the parents of each request; raises UsageError for an unknown or repeated name."""
    names: dict[str, int] = {}
    for index, item in enumerate(requests):
        if item.name is not None and names.setdefault(item.name, index) != index:
            raise _error(requests, index, f"name {item.name!r} was already used in this batch")
    parents: list[Parents] = []
    for index, item in enumerate(requests):
        of_request: Parents = []
        for parent in item.after:
            if isinstance(parent, int):
                of_request.append(parent)
            elif parent in names:
                of_request.append(BatchParent(names[parent]))
            else:
                raise _error(requests, index, _unknown(parent, list(names)))
        parents.append(of_request)
    return parents


def batch_order(requests: Sequence[Invocation], parents: Sequence[Parents]) -> list[int]:
    """Return the indexes of the requests, parents first; raises UsageError for a cycle."""
    children: list[list[int]] = [[] for _ in requests]
    waits = [0] * len(requests)
    for index, of_request in enumerate(parents):
        for parent in of_request:
            if isinstance(parent, BatchParent):
                children[parent.index].append(index)
                waits[index] += 1
    if all(
        parent.index < index
        for index, of_request in enumerate(parents)
        for parent in of_request
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
        cycle = _cycle(parents, {index for index, count in enumerate(waits) if count})
        names = " -> ".join(requests[index].name or "?" for index in cycle)
        raise UsageError(f"after: these requests wait for each other: {names}")
    return order


def _cycle(parents: Sequence[Parents], unordered: set[int]) -> list[int]:
    """Return the indexes of a cycle among these requests, the first again at the end."""
    path: list[int] = []
    index = min(unordered)
    while index not in path:
        path.append(index)
        index = next(
            parent.index
            for parent in parents[index]
            if isinstance(parent, BatchParent) and parent.index in unordered
        )
    return [*path[path.index(index) :], index][::-1]


def _unknown(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    if not hint:
        ellipsis = ", …" if len(names) > SHOWN_NAMES else ""
        hint = f"; names: {', '.join(names[:SHOWN_NAMES]) or 'none'}{ellipsis}"
    return f"after {name!r}: no request of this batch has this name{hint}"


def _error(requests: Sequence[Invocation], index: int, problem: str) -> UsageError:
    if len(requests) == 1:
        return UsageError(problem)
    return UsageError(f"request {index + 1}: {problem}")
