"""The leader's part in work that transactions left, so that no worker waits for their locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.database.database import Database
from draftsman.database.isolation import Isolation, run_all
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import DueTurn, Sweep, repeat, run_isolated
from draftsman.queues import store

POSTPONED: Final = 20
"""Maximum number of buckets, keys and jobs whose locks a transaction has at a time."""
CANCELED: Final = 500
"""Maximum number of jobs that a transaction cancels."""


class PostponedWork:
    """Gives places and keys, resolves children and groups, and cancels large trees and groups."""

    def __init__(self, db: Database) -> None:
        self._postponed = Isolation(db, "do_postponed", lambda id: f"postponed work {id}")
        self._canceled = Isolation(db, "do_cancels")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of postponed work."""
        return [
            Sweep(
                name="postponed",
                run=self.sweep,
                isolations=(self._postponed, self._canceled),
                due_turn=DueTurn.POSTPONED_WORK,
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Do the work that is due; return the number of buckets, keys and jobs."""
        return await run_all(
            lambda: repeat(self._do, POSTPONED, term), lambda: repeat(self._cancel, CANCELED, term)
        )

    async def _do(self, term: LeaderTerm) -> int:
        return await run_isolated(
            self._postponed,
            store.do_postponed,
            store.do_postponed_candidates,
            term=term,
            limit=POSTPONED,
        )

    async def _cancel(self, term: LeaderTerm) -> int:
        return await run_isolated(
            self._canceled,
            store.do_cancels,
            store.do_cancels_candidates,
            term=term,
            limit=CANCELED,
        )
