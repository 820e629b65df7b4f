"""Commits of a mirror that have the files of a commit and some others, without a working tree."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from draftsman.agent_runs.clones.git import MAX_LISTING, git


async def mixed_commit(mirror: Path, commit: str, source: str, paths: Sequence[str]) -> str:
    """Return a commit on top of `commit`, in which these paths are as in `source`.

    A path that `source` does not have is removed. Raises Failure with origin `git`.
    """
    listed = await git("ls-tree", "-rz", "--full-tree", source, cwd=mirror, limit=MAX_LISTING)
    entries = dict(_entry(line) for line in listed.split(b"\0") if line)
    names = [os.fsencode(path) for path in paths]
    removal = b"0 " + b"0" * len(commit) + b"\t"
    lines = [entries.get(name, removal + name) for name in names]
    reason = f"with {len(names)} files of {source[:12]}"
    return await commit_with_entries(mirror, commit, lines, reason)


async def commit_with_entries(
    mirror: Path, commit: str, lines: Sequence[bytes], reason: str
) -> str:
    """Return a commit on top of `commit` with these lines for `git update-index --index-info`."""
    with tempfile.TemporaryDirectory(dir=mirror) as folder:
        index = {"GIT_DIR": str(mirror), "GIT_INDEX_FILE": str(Path(folder, "index"))}
        await git("read-tree", commit, cwd=mirror, env=index)
        await git(
            "update-index",
            "--replace",
            "-z",
            "--index-info",
            cwd=mirror,
            env=index,
            stdin=b"".join(line + b"\0" for line in lines),
        )
        tree = (await git("write-tree", cwd=mirror, env=index)).decode().strip()
    message = f"{commit[:12]} {reason}"
    created = await git("commit-tree", tree, "-p", commit, "-m", message, cwd=mirror)
    return created.decode().strip()


def _entry(line: bytes) -> tuple[bytes, bytes]:
    """Return the path of a line of `git ls-tree`, and the line for `git update-index`."""
    details, _, name = line.partition(b"\t")
    mode, _, sha = details.split(b" ")
    return name, mode + b" " + sha + b"\t" + name
