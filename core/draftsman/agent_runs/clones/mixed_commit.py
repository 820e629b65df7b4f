"""Commits with the files of two commits, built in a mirror without a working tree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from draftsman.agent_runs.clones.git import git


async def mixed_commit(mirror: Path, commit: str, other: str, paths: Sequence[str]) -> str:
    """Return a commit on top of `commit`, in which these paths are as in `other`.

    A path that `other` does not have is removed. Raises Failure with origin `git`.
    """
    listed = await git("ls-tree", "-rz", "--full-tree", other, cwd=mirror)
    entries = dict(_entry(line) for line in listed.split(b"\0") if line)
    names = [os.fsencode(path) for path in paths]
    removal = b"0 " + b"0" * len(commit) + b"\t"
    lines = [entries.get(name, removal + name) for name in names]
    with tempfile.TemporaryDirectory(dir=mirror) as folder:
        index = {"GIT_DIR": str(mirror), "GIT_INDEX_FILE": str(Path(folder, "index"))}
        await git("read-tree", commit, cwd=mirror, env=index)
        await git(
            *("update-index", "--replace", "-z", "--index-info"),
            cwd=mirror,
            env=index,
            stdin=b"".join(line + b"\0" for line in lines),
        )
        tree = (await git("write-tree", cwd=mirror, env=index)).decode().strip()
    message = f"{commit[:12]} with {len(names)} files of {other[:12]}"
    made = await git("commit-tree", tree, "-p", commit, "-m", message, cwd=mirror)
    return made.decode().strip()


def _entry(line: bytes) -> tuple[bytes, bytes]:
    """Return the path of a line of `git ls-tree`, and the line for `git update-index`."""
    details, _, name = line.partition(b"\t")
    mode, _, sha = details.split(b" ")
    return name, mode + b" " + sha + b"\t" + name
