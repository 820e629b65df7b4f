"""Dependencies of a retry: its parents, and the jobs that were skipped because of the failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from draftsman.domain.job import Condition
from draftsman.store.postgres.database import Connection
from draftsman.store.scheduling import dependencies
from draftsman.store.scheduling.dependencies import Link

Insert = Callable[[int], Awaitable[int | None]]
"""Inserts the retry of a job that waits for parents; returns its number, None if it existed."""


async def link_retry(conn: Connection, old: int, new: int, insert: Insert | None) -> None:
    """Let a new retry wait for those parents of the old job that have not ended.

    With `insert`, all jobs that were skipped because of the old job are retried too, and wait for
    the retries of their parents.
    """
    links = [
        Link(new, parent.number, Condition.ANY if parent.met is not None else parent.condition)
        for parent in await dependencies.parents(conn, old)
    ]
    if insert is not None:
        retries: dict[int, int | None] = {old: new}
        for job, parent, condition in await dependencies.skipped(conn, old):
            if job not in retries:
                retries[job] = await insert(job)
            if (retry := retries[job]) is not None:
                links.append(Link(retry, retries.get(parent) or parent, condition))
    if links:
        await dependencies.link(conn, links)
