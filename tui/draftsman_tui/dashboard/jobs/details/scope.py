"""Scope of a job: the jobs that a filter `job:D-142` selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.ids import parse_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from draftsman.runtime import Runtime


async def scope(rt: Runtime, name: str) -> Sequence[int]:
    """Return the job, its tree, its parents and its retries; raises NotFound and UsageError."""
    number = await rt.read_model.resolve(parse_job(name))
    tree = await rt.workflows.tree(number)
    numbers = {job.number for job in tree.jobs} | {parent.number for parent in tree.parents}
    numbers |= {link.number for link in await rt.read_model.chain(number)}
    if tree.spawned_by is not None:
        numbers.add(tree.spawned_by)
    return sorted(numbers, reverse=True)
