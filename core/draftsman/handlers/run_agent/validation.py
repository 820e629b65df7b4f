"""What a profile does around an agent: it prepares the clone, and validates what was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.reserved_names import Owner
from draftsman.errors import Failure
from draftsman.handlers.clone.workspace import Workspace
from draftsman.handlers.context import RunContext
from draftsman.handlers.run_agent.commands import CommandResult, CommandRunner
from draftsman.services.repos import SavedProfile

SETUP: Final = "setup"
"""The code of the failure of a set-up command; it may be the network's fault."""


async def run_setup(ctx: RunContext, space: Workspace, saved: SavedProfile | None) -> None:
    """Run the set-up commands in the fresh clone of a run; raises Failure for one that fails."""
    if saved is None or not saved.profile.setup_commands:
        return
    runner = _runner(ctx, space, saved)
    for command in saved.profile.setup_commands:
        ran = await runner.run(command)
        await ctx.event("command_executed", ran.as_event(), Owner.WORKER)
        if not ran.passed:
            text = f"set-up command {ran.name!r} failed: {ran.summary}"
            declared = "PERMANENT" if ran.missing else "TRANSIENT_APP"
            raise Failure(
                text, origin="agent", code=SETUP, declared=declared, program_exit=ran.exit_code
            )


async def validate(
    ctx: RunContext, space: Workspace, saved: SavedProfile | None
) -> list[CommandResult]:
    """Run the validation commands on what the agent left; each end is an event."""
    if saved is None:
        return []
    runner, found = _runner(ctx, space, saved), []
    for command in saved.profile.validation_commands:
        ran = await runner.run(command)
        await ctx.event("validation_ran", ran.as_event(), Owner.WORKER)
        found.append(ran)
    return found


def add_validation(result: dict[str, Any], ran: Sequence[CommandResult]) -> dict[str, Any]:
    """Return the job's result with what validation found; its summary tells what fails."""
    if not ran:
        return result
    failing = [f"{one.name}: {one.summary}" for one in ran if one.required and not one.passed]
    missing = [one.name for one in ran if one.missing]
    tail = f"; validation fails: {'; '.join(failing)}" if failing else ""
    if not failing and len(missing) == len(ran):
        tail = f"; no validators ran: install {', '.join(missing)} on the workers"
    return result | {
        "summary": f"{result['summary']}{tail}".removeprefix("; "),
        "validated": not tail,
        "validation": [one.as_json() for one in ran],
    }


def _runner(ctx: RunContext, space: Workspace, saved: SavedProfile) -> CommandRunner:
    lease, quotas = ctx.settings.worker.lease, ctx.settings.quotas
    return CommandRunner.of(space, saved.profile, lease, ctx.on_heartbeat, quotas)
