"""Tokens and cost of a run, from the gateway or from the agent's own reports."""

from __future__ import annotations

from typing import Any, Final

from draftsman.handlers.run_agent.agent_messages import UsageMessage
from draftsman.handlers.run_agent.profile_limits import Budget
from draftsman.handlers.worker_run import WorkerRun

MAX_MODELS: Final = 20
"""Maximum number of models in the usage of a run."""


class UsageMeter:
    """Adds the calls of an iteration to `usage`, that of the run, and stores it at each call.

    With `metered`, the gateway counts the calls, and the agent's reports do not count.
    """

    def __init__(
        self, run: WorkerRun, usage: dict[str, Any], budget: Budget | None, *, metered: bool
    ) -> None:
        self._run = run
        self._usage = usage
        self._budget = budget
        self._metered = metered

    async def reported(self, call: UsageMessage) -> None:
        """Add a call that the agent reports; raises Failure `limit:budget`."""
        if not self._metered:
            await self.add(call)

    async def add(self, call: UsageMessage) -> None:
        """Add a call; raises Failure `limit:budget`."""
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            self._usage[name] = self._usage.get(name, 0) + getattr(call, name)
        models = {*self._usage.get("models", ())}
        if call.model and len(models) < MAX_MODELS:
            self._usage["models"] = sorted({*models, call.model})
        await self._run.usage(self._usage)
        if self._budget is not None:
            self._budget.check(self._usage)

    def begin_run(self) -> None:
        """Begin the usage of the job's next run, which continues this one."""
        if self._budget is not None:
            self._budget = self._budget.plus(self._usage)
        self._usage.clear()
