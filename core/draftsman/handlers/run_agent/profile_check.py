"""A look at a repository outside of any job: in a clone of its own, never in anybody's checkout."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from draftsman.domain.repos.repo_catalog import Repo
from draftsman.domain.repos.repo_profile import RepoProfile
from draftsman.domain.repos.repo_url import RepoUrl, parse
from draftsman.errors import Failure, UsageError
from draftsman.handlers.clone.git import git
from draftsman.handlers.clone.workspace import Workspace
from draftsman.handlers.run_agent.commands import CommandResult, CommandRunner
from draftsman.handlers.run_agent.profile_detection import detect_profile
from draftsman.settings import Settings

BARE_ENTRIES = ("HEAD", "objects", "refs")
"""What the top of a bare repository has."""


@dataclass(frozen=True, slots=True)
class RepoInspection:
    """A clone to look at; `commit` is what it shows."""

    space: Workspace
    lease: float

    @property
    def commit(self) -> str:
        """The commit that is looked at."""
        return self.space.base_sha

    def detect_profile(self, path: str) -> RepoProfile:
        """Return the profile that suits a folder; raises UsageError where it is none."""
        if not (self.space.path / path).is_dir():
            raise UsageError(f"the repository has no folder {path!r} in its last commit")
        return detect_profile(self.space.path, path)

    async def check(self, profile: RepoProfile) -> list[CommandResult]:
        """Set up and run the validation commands; raises Failure for a set-up that fails."""
        runner = CommandRunner.of(self.space, profile, self.lease)
        for ran in await runner.run_all(profile.setup_commands):
            if not ran.passed:
                what = f"set-up command {ran.name!r} failed: {ran.summary}"
                raise Failure(what, origin="agent", code="setup")
        return await runner.run_all(profile.validation_commands)


@asynccontextmanager
async def inspect_repository(
    settings: Settings, source: str, ref: str | None = None
) -> AsyncIterator[RepoInspection]:
    """Clone a repository for a while; raises Failure with origin `git`."""
    space = await Workspace.prepare(
        settings.data_dir,
        source,
        job=0,
        run=os.getpid(),
        tag=secrets.token_hex(6),
        base=ref,
        http=settings.http,
    )
    try:
        space = await space.with_sandbox(settings.sandbox)
        yield RepoInspection(space, settings.worker.lease)
    finally:
        with suppress(Failure, OSError):
            await space.remove()


def select_passing(
    proposed: RepoProfile, ran: Sequence[CommandResult]
) -> tuple[RepoProfile, list[CommandResult]]:
    """Return what is worth keeping of a proposal, and what ran as it is kept.

    What is not installed is left out; what fails on the untouched tree is no gate.
    """
    said = {one.name: replace(one, required=one.required and one.passed) for one in ran}
    commands = [
        command.model_copy(update={"required": said[command.name].required})
        for command in proposed.validation_commands
        if not said[command.name].missing
    ]
    return proposed.model_copy(update={"validation_commands": tuple(commands)}), list(said.values())


async def find_local_repository(path: Path) -> tuple[Repo, str]:
    """Return the repository that a folder of this machine is in, and the folder inside of it.

    It is known by the address of its `origin`, which is not kept: git is given the folder. Raises
    UsageError.
    """
    path = path.resolve()
    if not path.is_dir():
        raise UsageError(f"{path}: no such folder here; give a folder, or a URL")
    top = next((folder for folder in (path, *path.parents) if _is_top(folder)), None)
    if top is None:
        raise UsageError(f"{path}: no git repository there or above; give one, or its URL")
    address = parse(str(top))
    origin = await _origin(top) or address
    repo = Repo(None, origin.host, origin.owner, origin.name, address.url)
    return repo, "" if path == top else path.relative_to(top).as_posix()


def _is_top(folder: Path) -> bool:
    return (folder / ".git").exists() or all((folder / name).exists() for name in BARE_ENTRIES)


async def _origin(top: Path) -> RepoUrl | None:
    """Return where a repository comes from, without any secret that may stand there."""
    try:
        said = await git("config", "--get", "remote.origin.url", cwd=top)
        found = parse(_without_user(said.decode(errors="replace").strip()))
    except (Failure, UsageError):
        return None
    return found if found.host else None


def _without_user(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in {"http", "https"}:
        return url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
