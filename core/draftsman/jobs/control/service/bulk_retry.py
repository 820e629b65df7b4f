"""Bulk retry of finished jobs, each in a transaction of its own and at most once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from draftsman.database.database import Database
from draftsman.errors import Conflict, NotFound, Refused, UsageError
from draftsman.jobs.control import store
from draftsman.jobs.control.service.control import JobControl
from draftsman.jobs.job import TERMINAL, Status
from draftsman.jobs.job_summary import FinishedJob
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.people.actor import Actor

PAGE: Final = 1000
"""Jobs read by one statement."""


@dataclass(frozen=True, slots=True)
class RetryResult:
    """The result for one job: `made` is the retry, or `error` says why there is none."""

    retry_of: int
    made: SubmittedJob | None
    error: str | None = None


class BulkRetry:
    """Selection and retry of many finished jobs."""

    def __init__(self, db: Database, job_control: JobControl) -> None:
        self._db = db
        self._job_control = job_control

    async def matching(
        self,
        statuses: Sequence[Status],
        *,
        type: str | None = None,
        agent: str | None = None,
        repo: str | None = None,
        since: float | None = None,
    ) -> list[FinishedJob]:
        """Return the finished jobs that match every filter, oldest first.

        `since` is the maximum age of the finish in seconds. Jobs that were retried before are
        included, with their retry. Raises UsageError for a status that is not final.
        """
        if live := [status for status in statuses if status not in TERMINAL]:
            ends = ", ".join(sorted(TERMINAL - {Status.COMPLETED}))
            raise UsageError(f"only finished jobs can be retried, not {live[0]}; choose: {ends}")
        filters: dict[str, object] = {"type": type, "agent": agent, "repo": repo, "since": since}
        jobs = [
            job
            for status in dict.fromkeys(statuses)
            async for job in self._ended(status, filters)
            if job.matches
        ]
        return sorted(jobs, key=lambda job: job.number)

    async def retry(
        self, numbers: Sequence[int], actor: Actor, *, fresh: bool = False, again: bool = False
    ) -> AsyncIterator[RetryResult]:
        """Retry the jobs in this order, each in its own transaction; yield each result.

        A job that cannot be retried does not stop the others. A repeated call, as after an
        interruption, returns the retries that exist.
        """
        for number in numbers:
            try:
                submitted = await self._job_control.retry(number, actor, fresh=fresh, again=again)
            except (Refused, Conflict, NotFound) as error:
                yield RetryResult(number, None, str(error))
            else:
                yield RetryResult(number, submitted)

    async def _ended(
        self, status: Status, filters: dict[str, object]
    ) -> AsyncIterator[FinishedJob]:
        after = 0
        page = PAGE
        while page == PAGE:
            async with self._db.connection() as conn:
                jobs = await store.finished(conn, status, filters, after, PAGE)
            for job in jobs:
                yield job
            after = jobs[-1].number if jobs else after
            page = len(jobs)
