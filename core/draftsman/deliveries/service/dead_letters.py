"""Notification of dead letters that have no target."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.database.selection import Selection
from draftsman.deliveries.store import deliveries as store
from draftsman.deliveries.target import Target
from draftsman.ids import job_name
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat, run_isolated

_log = logging.getLogger(__name__)


class DeadLetters:
    """Sends dead letters without a target to the fallback, `limit` in a transaction."""

    def __init__(self, db: Database, *, fallback: Target | None, limit: int) -> None:
        self._fallback = fallback
        self._limit = limit
        self._isolation = Isolation(db, "notify")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of dead letters."""
        return [
            Sweep(
                name="notify",
                description="sends dead letters without a target to the fallback",
                run=partial(repeat, self.notify, self._limit),
                isolations=(self._isolation,),
                due=DueTime(DueTurn.OTHERS, store.NOTIFY_DUE),
            )
        ]

    async def notify(self, term: LeaderTerm) -> int:
        """Send dead letters without a target to the fallback; without a fallback, log them."""
        return await run_isolated(
            self._isolation,
            self._notify,
            store.notify_dead_letters_candidates,
            term=term,
            limit=self._limit,
        )

    async def _notify(
        self, conn: Connection, term: LeaderTerm, limit: int, selection: Selection
    ) -> int:
        letters = await store.notify_dead_letters(conn, term, limit, self._fallback, selection)
        for number, invoker in letters if self._fallback is None else ():
            _log.error(
                "%s of %s is a dead letter and has no notification target",
                job_name(number),
                invoker,
            )
        return len(letters)
