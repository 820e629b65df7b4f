"""Coverage of the changed lines, measured by a command of the profile."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.evidence.coverage import Coverage, changed_coverage
from draftsman.agent_runs.validation.commands import CommandResult
from draftsman.agent_runs.validation.fresh_clone import CommittedWork, fresh_clone
from draftsman.errors import Failure
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import CoverageProfile
from draftsman.settings.profiles import CommandSettings, without_report

NAME: Final = "coverage"
"""Name of its entry among the validation results."""


async def measure(
    work: CommittedWork, profile: CoverageProfile, commit: str, *, required: bool
) -> tuple[Coverage | None, CommandResult]:
    """Run the coverage command on a commit of the work.

    Returns the coverage, and its validation entry. None if the command fails or writes no report.
    """
    folder = work.saved.profile.path
    report = str(PurePosixPath(folder, profile.report))
    command = CommandSettings(
        name=NAME,
        command=profile.command,
        required=required and profile.minimum is not None,
        timeout=profile.timeout,
    )
    if await work.workspace.has_file(commit, report):
        return None, CommandResult(
            name=NAME,
            command=shlex.join(without_report(profile.command)),
            exit_code=1,
            seconds=0.0,
            output=f"{report} is a file of the work, so it is no report; let the repository ignore"
            " it",
            required=command.required,
        )
    async with fresh_clone(work, commit, purpose=NAME) as clone:
        result = clone.broken or await clone.run(command)
        await work.run.event("validation_ran", result.as_event(), Owner.WORKER)
        if not result.passed:
            return None, result
        try:
            data = await clone.workspace.read_artifact(report)
        except Failure as error:
            return None, result.with_output(str(error), exit_code=1)
        root = clone.workspace.sandbox_path
    patch = (await work.workspace.diff(work.snapshot)).decode("utf-8", "replace")
    lines = data.decode("utf-8", "replace")
    # a report of 25 MB takes seconds, in which the worker must renew its leases
    coverage = await asyncio.to_thread(changed_coverage, patch, lines, root, folder)
    too_low = profile.minimum is not None and coverage.percent < profile.minimum
    output = "\n".join(coverage.lines())
    if profile.minimum is not None:
        output += f"; the minimum is {profile.minimum:g} %"
    return coverage, result.with_output(output, exit_code=int(too_low))
