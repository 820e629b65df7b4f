"""draftsman as it was at another commit: a temporary worktree with the environment of this one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import install
from bench.queue_process import ROOT
from bench.server import BenchError

NAME = "before"
RECORDED = Path(__file__).with_name("baseline.txt")
"""The commit that is compared if none is named."""


@contextmanager
def program(commit: str, root: Path = ROOT) -> Iterator[install.Program]:
    """Check out a commit, or the recorded one if it is empty; yield its program.

    Its own files come first on the path, those of the installed packages after them. Raises
    BenchError if there is no such commit.
    """
    name = commit or RECORDED.read_text(encoding="utf-8").strip()
    try:
        found = _git(root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        raise BenchError(
            f"there is no commit {name} here: fetch it, or name another with --guard COMMIT"
        ) from None
    with tempfile.TemporaryDirectory(prefix="draftsman-bench-") as folder:
        tree = Path(folder, "tree")
        _git(root, "worktree", "add", "--quiet", "--detach", str(tree), found)
        try:
            path = os.pathsep.join(map(str, _folders(tree)))
            yield replace(install.ours(), environment={"PYTHONPATH": path}, folder=tree)
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))


def _folders(tree: Path) -> Iterator[Path]:
    """Return the folders of a checkout that stand for those of this one on the path."""
    for entry in map(Path, sys.path):
        if entry.is_relative_to(ROOT) and (folder := tree / entry.relative_to(ROOT)).is_dir():
            yield folder


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ("git", "-C", str(root), *arguments), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
