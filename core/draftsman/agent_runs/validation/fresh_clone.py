"""Fresh clones of a commit, in which draftsman runs the commands that judge the work.

No file that an agent or an earlier command left is in them: only the files of the commit, and
those that the setup commands of the profile make.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from draftsman.agent_runs.agent_choice import profile_network
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.validation.commands import CommandResult, CommandRunner, missing_module
from draftsman.errors import Failure
from draftsman.formats.amounts import counted
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import SavedProfile
from draftsman.settings.network import intersect
from draftsman.settings.profiles import CommandSettings, SetupSettings

SETUP: Final = "setup"
"""Failure code of a setup command, which may have failed because of the network."""


@dataclass(frozen=True, slots=True)
class CommittedWork:
    """The work of an iteration as a commit, and the profile by which it is validated."""

    run: WorkerRun
    workspace: Workspace
    snapshot: Snapshot
    saved: SavedProfile
    network: bool | tuple[str, ...]
    """The network of the agent, without groups."""


@dataclass(frozen=True, slots=True)
class FreshClone:
    """A clone of a commit with the commands of a profile; open it with `fresh_clone`."""

    workspace: Workspace
    runner: CommandRunner
    broken: CommandResult | None = None
    """The setup command that failed on the commit."""
    base_sha: str = ""
    """The base of the work; a program or module that it has is not one of the host."""

    async def run(self, command: CommandSettings | SetupSettings) -> CommandResult:
        """Run a command; paths of this machine in its output are relative.

        Its changes of tracked files are undone: the next command checks the commit, too.
        """
        result = await self.runner.run(command)
        if undone := await self.workspace.undo_changes():
            text = f"{result.output.rstrip()}\nundone: its changes of {counted(undone, 'file')}"
            result = result.with_output(text.lstrip())
        if result.missing and await self._is_in_base(command.command, result.output):
            result = replace(result, missing=False)
        return result.with_output(str(self.workspace.relative(result.output)))

    async def _is_in_base(self, command: tuple[str, ...], output: str) -> bool:
        """Return whether the base commit has the module that the command does not find."""
        module = missing_module(command, output)
        if module is None or not self.base_sha:
            return False
        paths = (PurePosixPath(self.runner.path, name) for name in (module, f"{module}.py"))
        return any([await self.workspace.has_file(self.base_sha, str(path)) for path in paths])


@asynccontextmanager
async def fresh_clone(
    work: CommittedWork, commit: str, *, purpose: str
) -> AsyncIterator[FreshClone]:
    """Clone a commit of the mirror, and run the setup commands.

    `purpose` is part of the folder's name: letters. Setup commands with more access than the agent
    run on the base commit, before the files of the commit replace those of the base: else the agent
    could give them code to run. Raises Failure `setup` if a command fails on the base commit.
    """
    run = work.run
    workspace = work.workspace
    on_base = setup_has_more_access(run, work.saved, work.network)
    clone = await Workspace.prepare(
        run.settings.data_dir,
        workspace.source,
        job=workspace.job,
        run=workspace.run,
        tag=f"{workspace.tag}-{purpose}",
        base=workspace.base_sha if on_base else commit,
        quotas=run.settings.quotas,
        parts=workspace.parts,
    )
    try:
        clone = await clone.with_sandbox(run.settings.sandbox)
        runner = runner_of(run, clone, work.saved)
        broken = None
        if on_base:
            await run_setup(run, clone, work.saved)
            await clone.check_out(commit)
        else:
            broken = await _first_failure(run, runner, work.saved.profile.setup_commands)
        await clone.keep_tracked()
        yield FreshClone(clone, runner, broken=broken, base_sha=workspace.base_sha)
    finally:
        with suppress(Failure, OSError):
            await clone.remove()


def setup_has_more_access(
    run: WorkerRun, saved: SavedProfile | None, network: bool | tuple[str, ...]
) -> bool:
    """Return whether setup commands have more access than the agent, whose network this is."""
    if saved is None or not saved.profile.setup_commands:
        return False
    setup_network = profile_network(run.settings, saved.profile)
    return intersect(setup_network, network) != setup_network


async def run_setup(run: WorkerRun, workspace: Workspace, saved: SavedProfile | None) -> None:
    """Run the setup commands on the base commit; raises Failure `setup` if a command fails."""
    if saved is None or not saved.profile.setup_commands:
        return
    runner = runner_of(run, workspace, saved)
    result = await _first_failure(run, runner, saved.profile.setup_commands)
    if result is not None:
        text = f"setup command {result.name!r} failed: {result.summary}"
        declared = "TRANSIENT_APP" if result.checked else "PERMANENT"
        raise Failure(
            text, origin="agent", code=SETUP, declared=declared, program_exit=result.exit_code
        )


async def _first_failure(
    run: WorkerRun, runner: CommandRunner, commands: Sequence[SetupSettings]
) -> CommandResult | None:
    for command in commands:
        result = await runner.run(command)
        await run.event("command_executed", result.as_event(), Owner.WORKER)
        if not result.passed:
            return result
    return None


def runner_of(run: WorkerRun, workspace: Workspace, saved: SavedProfile) -> CommandRunner:
    """Return the runner of the profile's commands in a clone of this run."""
    return CommandRunner.of(
        workspace,
        saved.profile,
        run.settings,
        on_heartbeat=run.on_heartbeat,
        log=run.log_line,
    )
