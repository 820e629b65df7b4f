"""Selection of finished jobs, for commands that act on all that match."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from draftsman.database.database import Database
from draftsman.errors import UsageError
from draftsman.jobs.details import store
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.job_summary import FinishedJob

PAGE: Final = 1000
"""Jobs read by one statement."""


class FinishedJobs:
    """Finished jobs that match a filter."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def matching(
        self,
        statuses: Sequence[Status],
        *,
        type: str | None = None,
        agent: str | None = None,
        repo: str | None = None,
        queue: str | None = None,
        tags: Sequence[str] = (),
        invoker: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> list[FinishedJob]:
        """Return the finished jobs that match every filter, as in `JobFilters`, oldest first.

        `since` and `until` are the maximum and the minimum age of the finish in seconds. Jobs that
        need nothing more are included, with the reason. Raises UsageError for a status that is not
        final.
        """
        if live := [status for status in statuses if status not in TERMINAL]:
            ends = ", ".join(sorted(TERMINAL - {Status.COMPLETED}))
            raise UsageError(f"only finished jobs can be retried, not {live[0]}; choose: {ends}")
        filters: dict[str, Any] = {"type": type, "agent": agent, "repo": repo, "queue": queue}
        filters |= {"tags": list(tags) or None, "invoker": invoker, "source": None}
        filters |= {"finished_since": since, "finished_until": until, "since": None, "until": None}
        jobs = [
            job
            for status in dict.fromkeys(statuses)
            async for job in self._ended(status, filters)
            if job.matches
        ]
        return sorted(jobs, key=lambda job: job.number)

    async def _ended(self, status: Status, filters: dict[str, Any]) -> AsyncIterator[FinishedJob]:
        after = 0
        page = PAGE
        while page == PAGE:
            async with self._db.connection() as conn:
                jobs = await store.finished(conn, status, filters, after, PAGE)
            for job in jobs:
                yield job
            after = jobs[-1].number if jobs else after
            page = len(jobs)
