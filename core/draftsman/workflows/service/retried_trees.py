"""Dependencies of a retry: its parents, and the jobs that were skipped because of the failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from draftsman.database.database import Connection
from draftsman.jobs.job import Condition
from draftsman.workflows import store
from draftsman.workflows.store import Link

Insert = Callable[[int, bool], Awaitable[int | None]]
"""Inserts the retry of a job, held if it waits for parents; returns its number, None if it existed.

"""


async def link_retry(conn: Connection, old: int, new: int, insert: Insert | None) -> None:
    """Put a new retry in its group, and let it wait for the parents that have not ended.

    With `insert`, all jobs that were skipped because of the old job are retried too, and wait for
    the retries of their parents.
    """
    await store.inherit_group(conn, old, new)
    links = [
        Link(new, parent.number, Condition.ANY if parent.met is not None else parent.condition)
        for parent in await store.parents(conn, old)
    ]
    if insert is not None:
        retries: dict[int, int | None] = {old: new}
        for job, parent, condition in await store.skipped(conn, old):
            if job not in retries:
                retries[job] = await insert(job, parent is not None)
                if (number := retries[job]) is not None:
                    await store.inherit_group(conn, job, number)
            if (retry := retries[job]) is not None and parent is not None:
                links.append(Link(retry, retries.get(parent) or parent, condition))
    if links:
        await store.link(conn, links)
