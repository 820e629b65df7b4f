"""Promotion of scheduled and retrying jobs that are due to the queue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from draftsman.database.database import Database
from draftsman.database.isolation import Isolation
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs as store
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat, run_isolated


class Promotion:
    """Queues jobs that are due, `limit` in a transaction."""

    def __init__(self, db: Database, limit: int) -> None:
        self._limit = limit
        self._isolation = Isolation(db, "promote")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of jobs that are due."""
        return [
            Sweep(
                name="promote",
                description="queues scheduled jobs and retries",
                run=partial(repeat, self.promote, self._limit),
                isolations=(self._isolation,),
                due=DueTime(DueTurn.READY_JOBS, store.PROMOTE_DUE),
            )
        ]

    async def promote(self, term: LeaderTerm) -> int:
        """Queue scheduled and retrying jobs that are due; return their number."""
        return await run_isolated(
            self._isolation,
            store.promote,
            store.promote_candidates,
            term=term,
            limit=self._limit,
        )
