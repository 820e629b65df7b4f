"""Setup commands before an agent, and validation commands after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.read_models import SavedProfile
from draftsman.domain.reserved_names import Owner
from draftsman.errors import Failure
from draftsman.handlers.clone.workspace import Workspace
from draftsman.handlers.run_agent.commands import CommandResult, CommandRunner
from draftsman.handlers.worker_run import WorkerRun

SETUP: Final = "setup"
"""Failure code of a setup command, which may have failed because of the network."""


async def run_setup(run: WorkerRun, workspace: Workspace, saved: SavedProfile | None) -> None:
    """Run the setup commands in the new clone of a run; raises Failure if a command fails."""
    if saved is None or not saved.profile.setup_commands:
        return
    runner = _runner(run, workspace, saved)
    for command in saved.profile.setup_commands:
        result = await runner.run(command)
        await run.event("command_executed", result.as_event(), Owner.WORKER)
        if not result.passed:
            text = f"setup command {result.name!r} failed: {result.summary}"
            declared = "PERMANENT" if result.missing else "TRANSIENT_APP"
            raise Failure(
                text, origin="agent", code=SETUP, declared=declared, program_exit=result.exit_code
            )


async def validate(
    run: WorkerRun, workspace: Workspace, saved: SavedProfile | None
) -> list[CommandResult]:
    """Run the validation commands on the agent's work; record each result as an event."""
    if saved is None:
        return []
    runner, results = _runner(run, workspace, saved), []
    for command in saved.profile.validation_commands:
        result = await runner.run(command)
        await run.event("validation_ran", result.as_event(), Owner.WORKER)
        results.append(result)
    return results


def blocking_failures(commands: Sequence[CommandResult]) -> list[CommandResult]:
    """Return the required commands that failed; the work must not be published."""
    return [item for item in commands if item.required and not item.passed]


def add_validation(result: dict[str, Any], commands: Sequence[CommandResult]) -> dict[str, Any]:
    """Return the job's result with the validation results; all required commands passed."""
    if not commands:
        return result
    missing = [item.name for item in commands if item.missing]
    note = ""
    if len(missing) == len(commands):
        note = f"; no validators ran: install {', '.join(missing)} on the workers"
    return result | {
        "summary": f"{result['summary']}{note}".removeprefix("; "),
        "validated": not note,
        "validation": [item.as_json() for item in commands],
    }


def _runner(run: WorkerRun, workspace: Workspace, saved: SavedProfile) -> CommandRunner:
    return CommandRunner.of(workspace, saved.profile, run.settings, run.on_heartbeat, run.log_line)
