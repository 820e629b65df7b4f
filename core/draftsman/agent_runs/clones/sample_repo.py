"""The sample repository of the demo: a small Python project with lint errors."""

from __future__ import annotations

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones.git import git, init
from draftsman.errors import UsageError
from draftsman.resources import folder

SAMPLE: Final = "samples/inventory"
DATE: Final = "1715947200 +0000"
"""Date of the commit, 17 May 2024, noon, so that its id is the same everywhere."""


async def make_sample_repo(path: Path) -> str:
    """Create the repository in an empty or new folder; return the id of its only commit.

    Raises UsageError if the folder is not empty, and Failure with origin `git`.
    """
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise UsageError(f"{path} is not empty; choose a new folder for the sample repository")
    _copy(folder(SAMPLE), path)
    dates = {"GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
    await init(path, "-bmain")
    await git("add", "--all", cwd=path)
    await git("commit", "--quiet", "--message=Count the warehouse", cwd=path, env=dates)
    return (await git("rev-parse", "HEAD", cwd=path)).decode().strip()


def _copy(source: Traversable, target: Path) -> None:
    """Copy the folder without the suffix `.txt`, which hides its files from our linters."""
    for entry in source.iterdir():
        if entry.is_dir():
            (target / entry.name).mkdir()
            _copy(entry, target / entry.name)
        elif entry.name.endswith(".txt"):
            (target / entry.name.removesuffix(".txt")).write_bytes(entry.read_bytes())
