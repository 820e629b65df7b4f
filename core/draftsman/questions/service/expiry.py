"""The end of a question's time: it escalates, or closes by its on_expire."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.database.database import Database
from draftsman.database.isolation import Isolation, run_all
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat, run_isolated
from draftsman.questions.store import questions as store


class Expiry:
    """Escalates and closes expired questions, `limit` in a transaction."""

    def __init__(self, db: Database, limit: int) -> None:
        self._limit = limit
        self._escalated = Isolation(db, "escalate")
        self._closed = Isolation(db, "expire")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of expired questions."""
        return [
            Sweep(
                name="expire",
                description="escalates or closes questions past their deadline",
                run=self.expire,
                isolations=(self._escalated, self._closed),
                due=DueTime(DueTurn.QUESTIONS, store.EXPIRE_DUE),
            )
        ]

    async def expire(self, term: LeaderTerm) -> int:
        """Escalate or close expired questions, by their on_expire.

        Each statement passes the questions of the other, so one follows the other, not in turn.
        """
        return await run_all(
            lambda: repeat(self._escalate, self._limit, term),
            lambda: repeat(self._close, self._limit, term),
        )

    async def _escalate(self, term: LeaderTerm) -> int:
        return await run_isolated(
            self._escalated,
            store.escalate,
            store.escalate_candidates,
            term=term,
            limit=self._limit,
        )

    async def _close(self, term: LeaderTerm) -> int:
        return await run_isolated(
            self._closed,
            store.expire,
            store.expire_candidates,
            term=term,
            limit=self._limit,
        )
