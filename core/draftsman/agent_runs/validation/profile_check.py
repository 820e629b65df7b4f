"""Inspection of a repository outside of jobs, in a temporary clone."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from draftsman.agent_runs.clones.git import git
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.iteration_plan import open_source, parts_of
from draftsman.agent_runs.validation.commands import CommandResult, CommandRunner
from draftsman.errors import Failure, UsageError
from draftsman.repos.profile_detection import detect_profile, detect_tools
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import RepoProfile
from draftsman.repos.repo_url import RepoUrl, parse, repository_top
from draftsman.repos.tool_setup import ToolSetup
from draftsman.settings import Settings


@dataclass(frozen=True, slots=True)
class RepoInspection:
    """A temporary clone to inspect."""

    workspace: Workspace
    settings: Settings

    @property
    def commit(self) -> str:
        """The inspected commit."""
        return self.workspace.base_sha

    @property
    def missing_parts(self) -> list[str]:
        """The parts of the repository that jobs do not have, in words."""
        return [part.text for part in self.workspace.missing_parts]

    def detect_profile(self, path: str, setup: ToolSetup | None = None) -> RepoProfile:
        """Return the detected profile of a folder, with this setup of its tools."""
        return detect_profile(self.workspace.path, path, setup)

    def detect_tools(self, path: str) -> ToolSetup | None:
        """Return how the tools of a folder are set up; raises UsageError if it does not exist."""
        if not (self.workspace.path / path).is_dir():
            raise UsageError(f"the repository has no folder {path!r} in its latest commit")
        return detect_tools(self.workspace.path, path)

    async def set_up(self, profile: RepoProfile) -> CommandResult | None:
        """Run the setup commands; return the first that failed, or None."""
        runner = CommandRunner.of(self.workspace, profile, self.settings)
        results = await runner.run_all(profile.setup_commands)
        return next((result for result in results if not result.passed), None)

    async def run_checks(self, profile: RepoProfile) -> list[CommandResult]:
        """Run the validation commands."""
        runner = CommandRunner.of(self.workspace, profile, self.settings)
        return await runner.run_all(profile.validation_commands)

    async def check(self, profile: RepoProfile) -> list[CommandResult]:
        """Run the setup and validation commands; raises Failure if a setup command fails."""
        if (failed := await self.set_up(profile)) is not None:
            text = f"setup command {failed.name!r} failed: {failed.summary}"
            raise Failure(text, origin="agent", code="setup")
        return await self.run_checks(profile)


@asynccontextmanager
async def inspect_repository(
    settings: Settings, source: str, ref: str | None = None, profile: RepoProfile | None = None
) -> AsyncIterator[RepoInspection]:
    """Clone a repository for the duration of the block, with the parts that a profile wants.

    Raises Failure with origin `git`.
    """
    workspace = await Workspace.prepare(
        settings.data_dir,
        open_source(settings, source),
        job=0,
        run=os.getpid(),
        tag=secrets.token_hex(6),
        base=ref,
        quotas=settings.quotas,
        parts=parts_of(settings, profile),
    )
    try:
        workspace = await workspace.with_sandbox(settings.sandbox)
        yield RepoInspection(workspace, settings)
    finally:
        with suppress(Failure, OSError):
            await workspace.remove()


def select_passing(
    detected: RepoProfile, results: Sequence[CommandResult]
) -> tuple[RepoProfile, list[CommandResult]]:
    """Return the profile without unusable commands, and the results with adjusted `required`.

    Commands that are not installed are removed; commands that fail on the unchanged tree are not
    required.
    """
    by_name = {item.name: replace(item, required=item.required and item.passed) for item in results}
    commands = [
        command.model_copy(update={"required": by_name[command.name].required})
        for command in detected.validation_commands
        if not by_name[command.name].missing
    ]
    return detected.model_copy(update={"validation_commands": tuple(commands)}), list(
        by_name.values()
    )


async def find_local_repository(path: Path) -> tuple[Repo, str]:
    """Return the repository that contains a local folder, and the folder's path inside it.

    Its name comes from the URL of its `origin`, its URL is the local path. Raises UsageError.
    """
    path = path.resolve()
    if not path.is_dir():
        raise UsageError(f"{path}: no such folder; use an existing folder or a URL")
    top = repository_top(path)
    if top is None:
        raise UsageError(
            f"{path}: not in a git repository; use a folder of a repository, or its URL"
        )
    address = parse(str(top))
    origin = await _origin(top) or address
    repo = Repo(None, origin.host, origin.owner, origin.name, address.url)
    return repo, "" if path == top else path.relative_to(top).as_posix()


async def _origin(top: Path) -> RepoUrl | None:
    """Return the URL of `origin` without credentials; None if there is none."""
    try:
        output = await git("config", "--get", "remote.origin.url", cwd=top)
        url = parse(_without_credentials(output.decode(errors="replace").strip()))
    except (Failure, UsageError):
        return None
    return url if url.host else None


def _without_credentials(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in {"http", "https"}:
        return url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
