"""Iterations of an agent: work whose required validators fail goes back to the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from draftsman.domain.quota import limit_failure
from draftsman.domain.read_models import Step
from draftsman.domain.reserved_names import Owner
from draftsman.errors import Failure
from draftsman.handlers.run_agent.commands import CommandResult
from draftsman.handlers.worker_run import WorkerRun

STEP: Final = "agent:iteration:"
"""Prefix of the steps that record the iterations after the first."""
RESULT: Final = "agent:result:"
"""Prefix of the steps that record the result of an iteration whose work waits for an approval."""
FAILED: Final = "validation"
"""Failure code of work whose required validators fail."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """An iteration of the job, and the reason for it."""

    number: int = 1
    tree: str | None = None
    """The tree that the previous iteration left."""
    failed: tuple[dict[str, Any], ...] = ()
    """The required validators that failed on it."""
    result: dict[str, Any] | None = None
    """The result of the agent, if its work waited for an approval."""

    @classmethod
    def latest(cls, steps: Mapping[str, Step]) -> Iteration:
        """Return the latest iteration that the worker recorded."""
        number = 1
        while _is_done(steps, f"{STEP}{number + 1}"):
            number += 1
        recorded: dict[str, Any] = steps[f"{STEP}{number}"].result if number > 1 else {}
        ended = f"{RESULT}{number}"
        result = steps[ended].result if _is_done(steps, ended) else None
        return cls(number, recorded.get("tree"), tuple(recorded.get("failed", ())), result)

    async def save_result(self, run: WorkerRun, result: dict[str, Any]) -> None:
        """Record the result, so that the run after an approval does not start the agent again."""
        await run.step(f"{RESULT}{self.number}", lambda _: result, owner=Owner.WORKER)

    async def begin_next(
        self, run: WorkerRun, tree: str = "", failed: Sequence[CommandResult] = ()
    ) -> None:
        """Record that another iteration begins; `tree` is the work that failed, if it did."""
        reason = {"tree": tree, "failed": [_failed_validator(item) for item in failed]}
        key = f"{STEP}{self.number + 1}"
        await run.step(key, lambda _: reason, owner=Owner.WORKER)

    def check_next(self, tree: str, failed: Sequence[CommandResult], limit: int) -> None:
        """Raise Failure if another iteration is useless, or `limit:max_iterations`."""
        text = "; ".join(f"{item.name}: {item.summary}" for item in failed)
        text = f"not published, because required validators failed: {text}"
        if missing := [item.name for item in failed if item.missing]:
            raise _validation_failure(f"{text}; install {', '.join(missing)} on the workers")
        if tree == self.tree:
            raise _validation_failure(f"{text}; iteration {self.number} changed nothing")
        if self.number >= limit:
            raise limit_failure("max_iterations", f"{text}; {self.number} iterations")


def _is_done(steps: Mapping[str, Step], key: str) -> bool:
    return key in steps and steps[key].status == "done"


def _validation_failure(text: str) -> Failure:
    return Failure(text, origin="agent", code=FAILED, declared="PERMANENT")


def _failed_validator(item: CommandResult) -> dict[str, Any]:
    return {
        "name": item.name,
        "command": item.command,
        "exit_code": item.exit_code,
        "output": item.output,
    }
