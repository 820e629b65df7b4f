"""The leader's part in budgets: their configuration, and reservations of lost runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from draftsman.costs import store
from draftsman.database.database import Database
from draftsman.database.isolation import run_all
from draftsman.jobs.runs.run import LeaderTerm

LIMIT: Final = 1000
"""Reservations that a transaction deletes."""
_log = logging.getLogger(__name__)


class BudgetSweep:
    """Writes the budgets of this configuration to the database, once in the leader's term.

    All workers obey the table, whatever their own configuration.
    """

    def __init__(self, db: Database, rules: Sequence[dict[str, Any]], timezone: str) -> None:
        self._db = db
        self._rules, self._timezone = rules, timezone
        self._written: LeaderTerm | None = None

    async def sweep(self, term: LeaderTerm) -> int:
        """Apply changed budgets; return the number of deleted reservations of lost runs."""
        return await run_all(
            lambda: self._configure(term),
            lambda: self._db.run_transaction(lambda conn: store.release_lost(conn, term, LIMIT)),
        )

    async def _configure(self, term: LeaderTerm) -> None:
        if term.term is None or self._written == term:
            return
        rules, zone = self._rules, self._timezone
        if await self._db.run_transaction(lambda conn: store.configure(conn, term, rules, zone)):
            _log.info("the budgets have changed; now: %s", len(rules))
        self._written = term
