"""Budgets with their use, and costs."""

from __future__ import annotations

import math

from draftsman.domain.budgets import BudgetUse, Cost, CostGroup
from draftsman.errors import UsageError
from draftsman.store import budgets as store
from draftsman.store.postgres.database import Database

DAY = 86_400.0
MAX_DAYS = 36_600


class Budgets:
    """Reads of budgets and costs."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def uses(self) -> list[BudgetUse]:
        """Return the budgets with their use today, and those of unfinished jobs, by name."""
        async with self._db.connection() as conn:
            return await store.uses(conn)

    async def costs(
        self, by: CostGroup | str = CostGroup.REPO, since: float = 7 * DAY
    ) -> list[Cost]:
        """Return the costs of the last days, today included, the highest first; days in order.

        `since` is in seconds, rounded up to days. Raises UsageError.
        """
        try:
            group = CostGroup(by)
        except ValueError:
            raise UsageError(f"by must be one of {', '.join(CostGroup)}, not {by!r}") from None
        days = math.ceil(since / DAY) if math.isfinite(since) else 0
        if not 1 <= days <= MAX_DAYS:
            raise UsageError(f"since must be more than 0 and at most {MAX_DAYS} days")
        async with self._db.connection() as conn:
            return await store.costs(conn, group, days)
