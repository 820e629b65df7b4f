"""Iterations of an agent: work whose required validators fail goes back to the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.errors import Failure
from draftsman.formats.amounts import counted
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.quota import limit_failure
from draftsman.jobs.runs.saved_data import Step

STEP: Final = "agent:iteration:"
"""Prefix of the steps that record the iterations after the first."""
RESULT: Final = "agent:result:"
"""Prefix of the steps that record the result of an iteration whose work waits for people."""
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
    """The result of the agent, if its work waited for people."""
    last: int = 0
    """The last iteration that people allowed; 0: as in the profile."""
    usage: dict[str, float] = field(default_factory=dict)
    """Usage of the job before this iteration, by measure."""

    @classmethod
    def latest(cls, steps: Mapping[str, Step]) -> Iteration:
        """Return the latest iteration that the worker recorded."""
        number = 1
        while _is_done(steps, f"{STEP}{number + 1}"):
            number += 1
        recorded: dict[str, Any] = steps[f"{STEP}{number}"].result if number > 1 else {}
        ended = f"{RESULT}{number}"
        return cls(
            number=number,
            tree=recorded.get("tree"),
            failed=tuple(recorded.get("failed", ())),
            result=steps[ended].result if _is_done(steps, ended) else None,
            last=recorded.get("last", 0),
            usage=recorded.get("usage", {}),
        )

    async def save_result(self, run: WorkerRun, result: dict[str, Any]) -> None:
        """Record the result, so that the run after an answer does not start the agent again."""
        await run.step(f"{RESULT}{self.number}", lambda _: result, owner=Owner.WORKER)

    async def finish(self, run: WorkerRun, outcome: str, **fields: Any) -> None:
        """Write the event of its end, with the tokens and cost that are known."""
        total = await run.total_usage()
        usage = {name: amount - self.usage.get(name, 0) for name, amount in total.items()}
        payload = {
            "iteration": self.number,
            "outcome": outcome,
            "usage": {name: round(amount, 9) for name, amount in usage.items() if amount > 0},
        }
        fields = {name: value for name, value in fields.items() if value}
        await run.event("iteration_finished", payload | fields, Owner.WORKER)

    async def begin_next(
        self,
        run: WorkerRun,
        tree: str = "",
        failed: Sequence[CommandResult] = (),
        last: int = 0,
    ) -> None:
        """Record that another iteration begins.

        `tree` is the work that failed, if it did; `last` is the last iteration that people allow.
        """
        recorded = {
            "tree": tree,
            "failed": [_failed_validator(item) for item in failed],
            "last": last or self.last,
            "usage": await run.total_usage(),
        }
        await run.step(f"{STEP}{self.number + 1}", lambda _: recorded, owner=Owner.WORKER)

    def end_reason(self, tree: str, failed: Sequence[CommandResult], limit: int) -> str | None:
        """Return why people decide about failed work; None if the agent gets it back.

        Raises Failure for a command that is not installed, which no agent can mend.
        """
        text = failures_text(failed)
        if missing := [item.name for item in failed if item.missing]:
            text = f"{text}; install {', '.join(missing)} on the workers"
            raise validation_failure(text)
        if tree == self.tree:
            return f"{text}; iteration {self.number} changed nothing"
        if self.number >= max(limit, self.last):
            return f"{text}; {counted(self.number, 'iteration')}"
        return None


def failures_text(failed: Sequence[CommandResult]) -> str:
    """Return the failed commands with the summary of each."""
    return "; ".join(f"{item.name}: {item.summary}" for item in failed)


def validation_failure(text: str) -> Failure:
    """Return the failure of a job whose required validators fail."""
    return Failure(_not_published(text), origin="agent", code=FAILED, declared="PERMANENT")


def iterations_failure(text: str) -> Failure:
    """Return the failure of a job after its last iteration, with code `limit:max_iterations`."""
    return limit_failure("max_iterations", _not_published(text))


def _not_published(text: str) -> str:
    return f"not published, because required validators failed: {text}"


def _is_done(steps: Mapping[str, Step], key: str) -> bool:
    return key in steps and steps[key].status == "done"


def _failed_validator(item: CommandResult) -> dict[str, Any]:
    return {
        "name": item.name,
        "command": item.command,
        "exit_code": item.exit_code,
        "output": item.output,
    }
