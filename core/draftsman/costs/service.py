"""Budgets with their use, and costs."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from draftsman.costs import store
from draftsman.costs.budgets import MEASURES, BudgetState, BudgetUse, CallEstimate, Cost, CostGroup
from draftsman.database.database import Database, on_connection
from draftsman.database.isolation import run_all
from draftsman.errors import UsageError
from draftsman.jobs.runs.run import LeaderTerm, Lease, lease_lost
from draftsman.jobs.runs.sweep import Sweep
from draftsman.text import clean

DAY = 86_400.0
MAX_DAYS = 36_600


class Budgets:
    """Reads of budgets and costs."""

    def __init__(self, db: Database, rules: Sequence[dict[str, Any]] = ()) -> None:
        """`rules` are the budgets of this configuration, as its settings return them."""
        self._db = db
        self._rules = rules

    uses = on_connection(store.uses)

    def missing(self, uses: Sequence[BudgetUse]) -> list[BudgetUse]:
        """Return the budgets of this configuration that are not in use: no leader wrote them."""
        amounts = {(use.name, use.measure): use.budget - use.added for use in uses}
        configured = [
            BudgetUse(
                name=f"{rule['scope']}:{rule['value']}",
                day=None,
                measure=measure,
                used=0,
                reserved=0,
                budget=rule[measure],
                added=0,
            )
            for rule in self._rules
            for measure in MEASURES
            if measure in rule
        ]
        return [use for use in configured if amounts.get((use.name, use.measure)) != use.budget]

    async def costs(
        self, by: CostGroup | str = CostGroup.REPO, since: float = 7 * DAY, until: float = 0
    ) -> list[Cost]:
        """Return the costs of the last days, today included, the highest first; days in order.

        `since` and `until` are in seconds before now, in whole days: `since` is rounded up, and of
        `until` its day counts. Raises UsageError.
        """
        try:
            group = CostGroup(by)
        except ValueError:
            raise UsageError(f"by must be one of {', '.join(CostGroup)}, not {by!r}") from None
        days = math.ceil(since / DAY) if math.isfinite(since) else 0
        if not 1 <= days <= MAX_DAYS:
            raise UsageError(f"since must be more than 0 and at most {MAX_DAYS} days")
        async with self._db.connection() as conn:
            return await store.costs(conn, group, days, math.floor(until / DAY))


# Money and tokens of model calls: reserved before a call, recorded after it.
#
# Every write proves the run's lease; after LeaseLost the run must stop and write nothing more.
# Usage is recorded also for a run that has parked: its last calls were paid for.


class ModelCalls:
    """Reservations and usage of the runs' calls to models, against budgets."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def reserve(
        self,
        lease: Lease,
        call: UUID | None,
        estimate: CallEstimate,
        profile_budget: Mapping[str, float] | None = None,
    ) -> BudgetState:
        """Reserve the estimate of a call, or only check the budgets.

        `profile_budget` as for `record`.
        """
        async with self._db.connection() as conn:
            state = await store.reserve(conn, lease, call, estimate, profile_budget)
        if state is None:
            raise lease_lost(lease)
        return state

    async def record(
        self,
        lease: Lease,
        amounts: dict[str, Any],
        model: str | None = None,
        call: UUID | None = None,
        profile_budget: Mapping[str, float] | None = None,
    ) -> list[BudgetState]:
        """Record the run's usage so far; return the budgets that are used up.

        `call` is the call that it grew by, whose reservation ends, and `profile_budget` that of the
        job by the profile of its repository.
        """
        cleaned = clean(amounts)
        model = clean(model)
        async with self._db.connection() as conn:
            used_up = await store.record(conn, lease, cleaned, model, call, profile_budget)
        if used_up is None:
            raise lease_lost(lease)
        return used_up

    release = on_connection(store.release)

    async def raise_budget(self, lease: Lease, question: int, amount: float) -> None:
        """Add the amount of a person's answer to the budget of its question, once."""
        added = await self._db.run_transaction(
            lambda conn: store.add(conn, lease, question, amount)
        )
        if added is None:
            raise lease_lost(lease)


# The leader's part in budgets: their configuration, and reservations of lost runs.


LIMIT: Final = 1000
"""Reservations that a transaction deletes."""
_log = logging.getLogger(__name__)


class BudgetSweep:
    """Writes the budgets of this configuration to the database, once in the leader's term.

    All workers obey the table, whatever their own configuration.
    """

    def __init__(self, db: Database, rules: Sequence[dict[str, Any]], timezone: str) -> None:
        self._db = db
        self._rules = rules
        self._timezone = timezone
        self._written: LeaderTerm | None = None

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of budgets."""
        return [
            Sweep(
                name="budgets",
                description="writes the configured budgets, and ends reservations of ended runs",
                run=self.sweep,
                applies_settings=True,
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Apply changed budgets; return the number of deleted reservations of lost runs."""
        return await run_all(
            lambda: self._configure(term),
            lambda: self._db.run_transaction(lambda conn: store.release_lost(conn, term, LIMIT)),
        )

    async def _configure(self, term: LeaderTerm) -> None:
        if term.term is None or self._written == term:
            return
        rules = self._rules
        zone = self._timezone
        if await self._db.run_transaction(lambda conn: store.configure(conn, term, rules, zone)):
            _log.info("the budgets have changed; now: %s", len(rules))
        self._written = term
