"""Queries of jobs that wait for other jobs."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.domain.ids import unknown_job
from draftsman.domain.workflows.dependencies import JobTree, Parent
from draftsman.store.postgres.database import Database
from draftsman.store.scheduling import dependencies as store

TREE_LIMIT = 1000
"""Default number of jobs of a tree."""


class Workflows:
    """Trees of jobs, and parents with their results."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def tree(self, job: int, limit: int = TREE_LIMIT) -> JobTree:
        """Return a job and all that wait for it, directly or not; raises NotFound."""
        async with self._db.connection() as conn, conn.transaction():
            tree = await store.tree(conn, job, limit)
        if not tree.jobs:
            raise unknown_job(job)
        return tree

    async def parents(self, job: int) -> Sequence[Parent]:
        """Return the parents of a job with their results, in the order of its request."""
        async with self._db.connection() as conn:
            return await store.parents(conn, job)
