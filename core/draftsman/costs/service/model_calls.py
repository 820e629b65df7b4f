"""Money and tokens of model calls: reserved before a call, recorded after it.

Every write proves the run's lease; after LeaseLost the run must stop and write nothing more. Usage
is recorded also for a run that has parked: its last calls were paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from draftsman.costs import store as budgets
from draftsman.costs.budgets import BudgetState, CallEstimate
from draftsman.database.database import Database
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.text import clean


class ModelCalls:
    """Reservations and usage of the runs' calls to models, against budgets."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def reserve(
        self,
        lease: Lease,
        call: UUID | None,
        estimate: CallEstimate,
        own: Mapping[str, float] | None = None,
    ) -> BudgetState:
        """Reserve the estimate of a call, or only check the budgets; `own` as for `record`."""
        async with self._db.connection() as conn:
            state = await budgets.reserve(conn, lease, call, estimate, own)
        if state is None:
            raise lease_lost(lease)
        return state

    async def record(
        self,
        lease: Lease,
        amounts: dict[str, Any],
        model: str | None = None,
        call: UUID | None = None,
        own: Mapping[str, float] | None = None,
    ) -> list[BudgetState]:
        """Record the run's usage so far; return the budgets that are used up.

        `call` is the call that it grew by, whose reservation ends, and `own` the budget of the
        job by the profile of its repository.
        """
        cleaned, model = clean(amounts), clean(model)
        async with self._db.connection() as conn:
            used_up = await budgets.record(conn, lease, cleaned, model, call, own)
        if used_up is None:
            raise lease_lost(lease)
        return used_up

    async def release(self, call: UUID) -> None:
        """End the reservation of a call that used nothing."""
        async with self._db.connection() as conn:
            await budgets.release(conn, call)

    async def raise_budget(self, lease: Lease, question: int, amount: float) -> None:
        """Add the amount of a person's answer to the budget of its question, once."""
        added = await self._db.run_transaction(
            lambda conn: budgets.add(conn, lease, question, amount)
        )
        if added is None:
            raise lease_lost(lease)
