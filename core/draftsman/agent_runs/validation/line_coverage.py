"""Coverage of the changed lines, measured by a command of the profile."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.evidence.coverage import Coverage, changed_coverage
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import fresh_clone
from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import CoverageProfile, SavedProfile
from draftsman.settings.profiles import CommandSettings

NAME: Final = "coverage"
"""Name of its entry among the validation results."""


async def measure(
    run: WorkerRun,
    workspace: Workspace,
    snapshot: Snapshot,
    saved: SavedProfile,
    asked: CoverageProfile,
    *,
    required: bool,
    network: bool | tuple[str, ...],
) -> tuple[Coverage | None, CommandResult]:
    """Run the coverage command on the work; return the coverage, and its validation entry.

    None if the command fails or writes no report.
    """
    report = str(PurePosixPath(saved.profile.path, asked.report))
    required = required and asked.minimum is not None
    command = CommandSettings(
        name=NAME, command=asked.command, required=required, timeout=asked.timeout
    )
    if await workspace.has_file(snapshot.commit, report):
        text = f"{report} is a file of the work, so it is no report; let the repository ignore it"
        return None, CommandResult(NAME, shlex.join(asked.command), 1, 0.0, text, required)
    async with fresh_clone(
        run, workspace, saved, snapshot.commit, purpose=NAME, network=network
    ) as clone:
        result = clone.broken or await clone.run(command)
        await run.event("validation_ran", result.as_event(), Owner.WORKER)
        if not result.passed:
            return None, result
        try:
            data = await clone.workspace.read_artifact(report)
        except Failure as error:
            return None, result.with_output(str(error), exit_code=1)
        root = clone.workspace.sandbox_path
    patch = (await workspace.diff(snapshot)).decode("utf-8", "replace")
    lines = data.decode("utf-8", "replace")
    # a report of 25 MB takes seconds, in which the worker must renew its leases
    coverage = await asyncio.to_thread(changed_coverage, patch, lines, root, saved.profile.path)
    too_low = asked.minimum is not None and coverage.percent < asked.minimum
    output = "\n".join(coverage.lines())
    if asked.minimum is not None:
        output += f"; the minimum is {asked.minimum:g} %"
    return coverage, result.with_output(output, exit_code=int(too_low))
