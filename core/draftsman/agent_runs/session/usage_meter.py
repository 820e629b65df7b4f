"""Tokens and cost of a run, from the gateway or from the agent's own reports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from draftsman.agent_runs.protocol.agent_messages import UsageMessage
from draftsman.costs.budgets import MEASURES, BudgetState, CallEstimate
from draftsman.handlers.worker_run import WorkerRun

MAX_MODELS: Final = 20
"""Maximum number of models in the usage of a run."""
WAIT: Final = 300.0
"""Seconds that a call waits for the reservations of other calls."""
POLL: Final = 0.5
_NOTHING: Final = CallEstimate("", 0, 0, 0.0)


class UsageMeter:
    """Adds the calls of an iteration to `usage`, that of the run, and stores it at each call.

    With `metered`, the gateway counts the calls, and the agent's reports do not count. `own` is the
    budget of the job by the profile of its repository.
    """

    def __init__(
        self,
        run: WorkerRun,
        usage: dict[str, Any],
        profile_budget: Mapping[str, float] | None,
        *,
        metered: bool,
    ) -> None:
        self._run = run
        self._usage = usage
        self._counted = run.job.run
        """The run whose usage it is."""
        self._profile_budget = profile_budget
        self._metered = metered
        self._turn = asyncio.Lock()
        """Held while a call is added: each record is of the run so far."""

    async def reported(self, call: UsageMessage) -> list[BudgetState]:
        """Add a call that the agent reports; return the budgets that are used up."""
        return [] if self._metered else await self.add(call)

    async def add(self, call: UsageMessage, id: UUID | None = None) -> list[BudgetState]:
        """Add a call, whose reservation ends; return the budgets that are used up."""
        async with self._turn:
            if self._run.job.run != self._counted:  # a grace period ended with the next run
                self._counted = self._run.job.run
                self._usage.clear()
            for name in MEASURES:
                self._usage[name] = self._usage.get(name, 0) + getattr(call, name)
            models = {*self._usage.get("models", ())}
            if call.model and len(models) < MAX_MODELS:
                self._usage["models"] = sorted({*models, call.model})
            return await self._run.usage(self._usage, call.model, id, self._profile_budget)

    async def reserve(self, call: UUID, estimate: CallEstimate) -> BudgetState:
        """Reserve the maximum use of a call; waits for other calls if it does not fit in."""
        deadline = time.monotonic() + WAIT
        while True:
            state = await self._run.reserve(call, estimate, self._profile_budget)
            if state.outcome != "wait" or time.monotonic() > deadline:
                return state
            await asyncio.sleep(POLL)

    async def release(self, call: UUID) -> None:
        """End the reservation of a call that used nothing."""
        await self._run.release(call)

    async def check(self) -> BudgetState:
        """Return whether a budget is used up, before the agent starts."""
        return await self._run.reserve(None, _NOTHING, self._profile_budget)
