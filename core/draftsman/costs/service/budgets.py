"""Budgets with their use, and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from draftsman.costs import store
from draftsman.costs.budgets import MEASURES, BudgetUse, Cost, CostGroup
from draftsman.database.database import Database
from draftsman.errors import UsageError

DAY = 86_400.0
MAX_DAYS = 36_600


class Budgets:
    """Reads of budgets and costs."""

    def __init__(self, db: Database, rules: Sequence[dict[str, Any]] = ()) -> None:
        """`rules` are the budgets of this configuration, as its settings return them."""
        self._db = db
        self._rules = rules

    async def uses(self) -> list[BudgetUse]:
        """Return the budgets with their use today, and those of unfinished jobs, by name.

        The leader writes the configured budgets; the jobs are the newest 200 of each status.
        """
        async with self._db.connection() as conn:
            return await store.uses(conn)

    def missing(self, uses: Sequence[BudgetUse]) -> list[BudgetUse]:
        """Return the budgets of this configuration that are not in use: no leader wrote them."""
        amounts = {(use.name, use.measure): use.budget - use.added for use in uses}
        configured = [
            BudgetUse(f"{rule['scope']}:{rule['value']}", None, measure, 0, 0, rule[measure], 0)
            for rule in self._rules
            for measure in MEASURES
            if measure in rule
        ]
        return [use for use in configured if amounts.get((use.name, use.measure)) != use.budget]

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
