"""The leader's part in limits: their configuration, and places that no transition gives."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from draftsman.database.database import Database
from draftsman.database.isolation import run_all
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import DueTurn, Sweep, repeat
from draftsman.queues import store

JOBS: Final = 1000
"""Jobs that a transaction checks after a change of the limits."""
BUCKETS: Final = 100
"""Buckets whose places a transaction gives."""
_log = logging.getLogger(__name__)


class LimitSweep:
    """Writes the limits of this configuration to the database, and gives due places.

    The leader writes them once in its term: all workers obey the table, whatever their own
    configuration.
    """

    def __init__(self, db: Database, rules: Sequence[dict[str, Any]]) -> None:
        self._db = db
        self._rules = rules
        self._written: LeaderTerm | None = None

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of limits."""
        return [Sweep(name="limits", run=self.sweep, due_turn=DueTurn.PLACES)]

    async def sweep(self, term: LeaderTerm) -> int:
        """Apply changed limits, and give places that are due; return the number of jobs."""
        return await run_all(
            lambda: self._configure(term),
            lambda: self._check(term),
            lambda: self._db.run_transaction(lambda conn: store.give_places(conn, term, BUCKETS)),
        )

    async def _check(self, term: LeaderTerm) -> None:
        """Set the limits of jobs after a change."""

        async def check(term: LeaderTerm) -> int:
            return await self._db.run_transaction(lambda conn: store.check_limits(conn, term, JOBS))

        await repeat(check, 1, term)

    async def _configure(self, term: LeaderTerm) -> None:
        if term.term is None or self._written == term:
            return
        rules = self._rules
        if await self._db.run_transaction(lambda conn: store.configure_limits(conn, term, rules)):
            _log.info("the limits have changed; now: %s", len(rules))
        self._written = term
