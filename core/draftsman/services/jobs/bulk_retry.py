"""Many jobs that ended, run anew: each by the one arrow that retries a job, at most once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from draftsman.domain.job import TERMINAL, Status
from draftsman.domain.people.actor import Actor
from draftsman.errors import Conflict, NotFound, Refused, UsageError
from draftsman.services.jobs.job_control import JobControl
from draftsman.services.jobs.submissions import SubmittedJob
from draftsman.store import job_control as store
from draftsman.store.job_control import (
    FinishedJob as FinishedJob,  # of `matching`, for those who show it
)
from draftsman.store.postgres.database import Database

PAGE: Final = 1000
"""Jobs that one statement looks at."""


@dataclass(frozen=True, slots=True)
class RetryResult:
    """What became of one of them: `made` is its retry, else `error` says why there is none."""

    retry_of: int
    made: SubmittedJob | None
    error: str | None = None


class BulkRetry:
    """Finds jobs that ended, and retries them one after the other."""

    def __init__(self, db: Database, operate: JobControl) -> None:
        self._db = db
        self._operate = operate

    async def matching(
        self,
        statuses: Sequence[Status],
        *,
        type: str | None = None,
        agent: str | None = None,
        repo: str | None = None,
        since: float | None = None,
    ) -> list[FinishedJob]:
        """Return the jobs that ended so, `since` seconds ago at most, oldest first.

        Those that were retried before come too, with what followed them. Raises UsageError for a
        status that is no end.
        """
        if live := [status for status in statuses if status not in TERMINAL]:
            ends = ", ".join(sorted(TERMINAL - {Status.COMPLETED}))
            raise UsageError(f"a job that is {live[0]} has not ended; choose: {ends}")
        filters: dict[str, object] = {"type": type, "agent": agent, "repo": repo, "since": since}
        found = [
            job
            for status in dict.fromkeys(statuses)
            async for job in self._ended(status, filters)
            if job.wanted
        ]
        return sorted(found, key=lambda job: job.number)

    async def retry(
        self, numbers: Sequence[int], actor: Actor, *, fresh: bool = False, again: bool = False
    ) -> AsyncIterator[RetryResult]:
        """Retry them in this order, each in a transaction of its own; yield what became of each.

        One that is refused does not hinder the others. Who is interrupted and does it again gets
        the jobs that were made before.
        """
        for number in numbers:
            try:
                made = await self._operate.retry(number, actor, fresh=fresh, again=again)
            except (Refused, Conflict, NotFound) as error:
                yield RetryResult(number, None, str(error))
            else:
                yield RetryResult(number, made)

    async def _ended(
        self, status: Status, filters: dict[str, object]
    ) -> AsyncIterator[FinishedJob]:
        after, page = 0, PAGE
        while page == PAGE:
            async with self._db.connection() as conn:
                found = await store.finished(conn, status, filters, after, PAGE)
            for job in found:
                yield job
            after, page = found[-1].number if found else after, len(found)
