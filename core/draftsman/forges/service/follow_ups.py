"""Follow-ups on pull requests: reads, messages to finished jobs, and answers on forges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.database.database import Database
from draftsman.forges.follow_up import AnswerDue, Family, TrackedPull
from draftsman.forges.store import follow_ups as store

LIMIT: Final = 200
"""Maximum number of answers and branches in one round."""


class FollowUps:
    """Pull requests of jobs, and the jobs that follow them up."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def family(self, job: int) -> Family | None:
        """Return the pull request of a job, with its first job and all follow-ups."""
        async with self._db.connection() as conn:
            return await store.family(conn, job)

    async def jobs_of_pull(self, forge: str, project: str, number: int) -> list[int]:
        """Return the jobs of a pull request, the newest first; none if no job opened it."""
        async with self._db.connection() as conn:
            return await store.jobs_of_pull(conn, forge, project, number)

    async def is_open(self, job: int) -> bool:
        """Return whether a job has a pull request that is open and followed up."""
        async with self._db.connection() as conn:
            return await store.is_open(conn, job)

    async def unanswered(self, forge: str) -> list[AnswerDue]:
        """Return the events of a forge whose job has ended, and that have no answer."""
        async with self._db.connection() as conn:
            return await store.unanswered(conn, forge, LIMIT)

    async def answered(self, ids: Sequence[int]) -> None:
        """Record that events are answered, or need no answer."""
        async with self._db.connection() as conn:
            await store.answered(conn, ids)

    async def ended_branches(self, forge: str) -> list[TrackedPull]:
        """Return the pull requests that ended lately, with a branch to delete."""
        async with self._db.connection() as conn:
            return await store.ended_branches(conn, forge, LIMIT)

    async def branch_deleted(self, root: int) -> None:
        """Record that the branch of a pull request is deleted."""
        async with self._db.connection() as conn:
            await store.branch_deleted(conn, root)
