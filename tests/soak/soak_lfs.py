"""The real `git lfs` with repositories of draftsman, and with the fake server of the tests."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from draftsman.agent_runs.clones.clone_parts import CloneParts
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.forges.pull_request import GitLogin
from draftsman.settings.http import HttpSettings
from draftsman_testing.forges.github import FakeGitHub
from tests.core.worker.agent_jobs import make_repository

pytestmark = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
LFS = CloneParts(lfs=True)
BIG = os.urandom(3_000_000)


async def git(*arguments: str, cwd: Path) -> str:
    """Run git with the filter of git-lfs."""
    config = {
        "filter.lfs.process": "git-lfs filter-process",
        "filter.lfs.clean": "git-lfs clean -- %f",
        "filter.lfs.smudge": "git-lfs smudge -- %f",
        "filter.lfs.required": "true",
        "user.name": "anna",
        "user.email": "anna@example.org",
        "safe.directory": "*",
        "protocol.file.allow": "always",
    }
    flags = [word for key, value in config.items() for word in ("-c", f"{key}={value}")]
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", *flags, *arguments]
    run = subprocess.run
    done = await asyncio.to_thread(run, command, cwd=cwd, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@pytest.fixture
async def source(tmp_path: Path) -> Path:
    """Give a repository whose files git-lfs has added."""
    repo = make_repository(tmp_path / "source", a="one\n")
    await git("lfs", "track", "*.bin", cwd=repo)
    (repo / "big.bin").write_bytes(BIG)
    await git("add", "-A", cwd=repo)
    await git("commit", "-qm", "big", cwd=repo)
    assert "git-lfs" in await git("show", "HEAD:big.bin", cwd=repo)
    return repo


@pytest.fixture
async def forge(tmp_path: Path, source: Path) -> AsyncIterator[FakeGitHub]:
    """Give a forge to which git-lfs has sent its objects."""
    async with FakeGitHub(tmp_path / "forge") as fake:
        fake.publish(source)
        await git("lfs", "push", "--all", url_of(fake), "main", cwd=source)
        assert list(fake.world.lfs.objects.values()) == [BIG]
        yield fake


def url_of(fake: FakeGitHub) -> str:
    """Return the URL of the repository with the token."""
    return fake.url.replace("://", f"://x-access-token:{fake.world.token}@")


async def worked(source: RepoSource, data: Path) -> Workspace:
    """Add a file to the work, and publish it."""
    workspace = await Workspace.prepare(data, source, job=1, run=1, parts=LFS)
    assert (workspace.path / "big.bin").read_bytes() == BIG
    assert await git("status", "--porcelain", cwd=workspace.path) == "", "for the agent's git"
    (workspace.path / "new.bin").write_bytes(BIG[::-1])
    await git("add", "new.bin", cwd=workspace.path)  # by the agent
    snapshot = await workspace.snapshot("work")
    assert snapshot.insertions == 3, "a pointer"
    await workspace.publish(snapshot)
    return workspace


async def test_git_lfs_has_the_work_from_a_folder(tmp_path: Path, source: Path) -> None:
    workspace = await worked(RepoSource.of(str(source)), tmp_path / "data")
    await git("clone", "-q", "-b", workspace.branch, f"file://{source}", "clone", cwd=tmp_path)
    assert (tmp_path / "clone" / "new.bin").read_bytes() == BIG[::-1]
    await git("lfs", "fsck", cwd=tmp_path / "clone")


async def test_git_lfs_has_the_work_from_a_forge(tmp_path: Path, forge: FakeGitHub) -> None:
    async def login() -> GitLogin:
        return GitLogin("x-access-token", forge.world.token)

    remote = RepoSource.of(forge.url, HttpSettings(allow=("127.0.0.1",)), login)
    workspace = await worked(remote, tmp_path / "data")
    await git("clone", "-q", "-b", workspace.branch, url_of(forge), "clone", cwd=tmp_path)
    for name, content in (("big.bin", BIG), ("new.bin", BIG[::-1])):
        assert (tmp_path / "clone" / name).read_bytes() == content
    await git("lfs", "fsck", cwd=tmp_path / "clone")
