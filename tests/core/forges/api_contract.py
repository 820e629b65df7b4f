"""A fake forge of each kind with a repository, and a published branch in it."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.forges.api.connection import forge_of, git_login_of
from draftsman.forges.api.publication import OpenedPullRequest, open_pull_request
from draftsman.forges.forge import Forge
from draftsman.forges.pull_request import (
    DRAFT_LINE,
    CommitStatus,
    PullRequestText,
    marker,
)
from draftsman.settings import Settings
from draftsman.settings.forges import ForgeSettings
from draftsman.settings.http import HttpSettings
from draftsman_testing.forges.gitea import FakeGitea
from draftsman_testing.forges.github import FakeGitHub, FakeGitHubApp
from draftsman_testing.forges.gitlab import FakeGitLab
from draftsman_testing.forges.server import FakeForge
from tests.core.worker.agent_jobs import git, make_repository

FAKES: Final[dict[str, type[FakeForge]]] = {
    "github": FakeGitHub,
    "github app": FakeGitHubApp,
    "gitlab": FakeGitLab,
    "gitea": FakeGitea,
}
ID: Final = UUID("01980a6e-0000-7000-8000-000000000142")
BRANCH: Final = "draftsman/D-1"


@dataclass
class ForgeHarness:
    """A forge as draftsman sees it, and the fake behind it."""

    fake: FakeForge
    settings: Settings
    folder: Path

    @property
    def forge(self) -> Forge:
        """The forge of the repository."""
        forge = forge_of(self.settings, self.fake.url)
        assert forge is not None
        return forge

    def table(self, **more: Any) -> ForgeSettings:
        """Return the settings of the forge, with other values."""
        return ForgeSettings.of(self.fake.settings() | more)

    async def workspace(self, run: int = 1) -> Workspace:
        """Clone the repository with the token of the forge."""
        return await Workspace.prepare(
            self.folder / "data",
            RepoSource.of(
                self.fake.url, self.settings.http, git_login_of(self.settings, self.fake.url)
            ),
            job=1,
            run=run,
        )

    @property
    def repository(self) -> Path:
        """A repository with the commits."""
        return forge_repository()

    def push(self, commit: int = 1) -> str:
        """Set the branch to a commit: 1, or 2 on top of it."""
        self.fake.world.push(BRANCH, COMMITS[commit])
        return COMMITS[commit]

    async def open(
        self, head: str, body: str = "Body", draft: bool = False, **table: Any
    ) -> OpenedPullRequest:
        """Open the pull request of the branch."""
        end = f"{DRAFT_LINE}\n" if draft else ""
        text = PullRequestText(
            BRANCH, "main", "Count to two", f"{body}\n\n{end}{marker('D-1', ID, head)}", draft
        )
        status = CommitStatus(not draft, "D-1: 1 of 1 commands passed")
        return await open_pull_request(
            self.forge, self.table(**table), text, status, id=ID, head=head
        )


COMMITS: Final[list[str]] = []
"""The commits of the repository, the branch main at the first."""


@functools.cache
def forge_repository() -> Path:
    """Return a repository of this process with three commits, to copy."""
    private = Path(tempfile.mkdtemp(prefix="draftsman-forge-"))
    atexit.register(shutil.rmtree, private)
    folder = make_repository(private / "source")
    for number in range(3):
        COMMITS.append(git("rev-parse", "HEAD", cwd=folder))
        git("commit", "-q", "--allow-empty", "-m", f"{number}", cwd=folder)
    git("reset", "-q", "--hard", COMMITS[0], cwd=folder)
    return folder


@asynccontextmanager
async def forge_harness(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ForgeHarness]:
    """Serve a forge with a repository of one commit."""
    async with FAKES[kind](folder / "forge") as fake:
        fake.publish(forge_repository())
        monkeypatch.setenv("FORGE_TOKEN", fake.world.token)
        if isinstance(fake, FakeGitHubApp):
            monkeypatch.setenv("FORGE_KEY", fake.private_key)
        http = HttpSettings(allow=("127.0.0.1",))
        settings = Settings(forges={"acme": fake.settings()}, http=http)
        yield ForgeHarness(fake, settings, folder)
