"""Repositories with a profile, and jobs of an agent in them, for tests of validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.agent_jobs import Files, git, make_repository, submit_agent_job

WRITE = """
def write(files):
    for name, text in files.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        if text is None:
            os.remove(name)
        else:
            open(name, "wb").write(text if isinstance(text, bytes) else text.encode())
"""
"""A function for the code of an agent: writes files, or removes those without a content."""


def commit_files(path: Path, files: Files) -> Path:
    """Make a repository with these files, besides `a.txt`."""
    repo = make_repository(path, a="one\n")
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text, encoding="utf-8")
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "second", "--allow-empty", cwd=repo)
    return repo


async def profiled_job(
    rt: Runtime, make: Factory, path: Path, files: Files, **fields: Any
) -> tuple[int, Path]:
    """Submit a job for the agent in a new repository with this profile."""
    repo = commit_files(path, files)
    await rt.repos.add(Repo.at(parse(str(repo))), profile(fields), make.owner)
    return await submit_agent_job(make, repo), repo
