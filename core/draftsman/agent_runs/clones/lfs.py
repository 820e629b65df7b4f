"""Files of Git LFS in a mirror: the pointers of its commits, and the store of their contents."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones import lfs_filter
from draftsman.agent_runs.clones.git import MAX_LISTING, git
from draftsman.agent_runs.clones.lfs_filter import (
    MAX_POINTER,
    LfsObject,
    parse_pointer,
    store_content,
)
from draftsman.agent_runs.clones.mixed_commits import commit_with_entries

ATTRIBUTES: Final = ".gitattributes"
FILTER: Final = b"filter=lfs"
KEPT_DAYS: Final = 8
"""Days that a content is kept after its last use: longer than any run."""
AGENT_CONFIG: Final = """[filter "lfs"]
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge --skip -- %f
\tprocess = git-lfs filter-process --skip
\trequired = false
"""
"""Configuration of the clone, by which the agent's git knows the files, where it has `git-lfs`."""


def store_of(mirror: Path) -> Path:
    """Return the store of a mirror, with the layout of Git LFS."""
    return mirror / "lfs"


def filter_config(mirror: Path) -> dict[str, str]:
    """Return the configuration by which git converts files of LFS with the store of a mirror."""
    program = (sys.executable, "-I", "-S", str(Path(lfs_filter.__file__)), str(store_of(mirror)))
    return {"filter.lfs.process": shlex.join(program), "filter.lfs.required": "true"}


def prune(store: Path) -> None:
    """Delete what no run of the last days has used."""
    oldest = time.time() - KEPT_DAYS * 86_400
    for path in store.rglob("*"):
        with suppress(FileNotFoundError):  # another run may delete it, too
            if path.is_file() and path.stat().st_mtime < oldest:
                path.unlink()


async def pointers_of(mirror: Path, commit: str) -> dict[bytes, LfsObject]:
    """Return the pointers of a commit, by path; empty without a file for which LFS is set."""
    listed = await git("ls-tree", "-rlz", "--full-tree", commit, cwd=mirror, limit=MAX_LISTING)
    small: dict[bytes, bytes] = {}
    attributes = []
    for line in filter(None, listed.split(b"\0")):
        details, _, path = line.partition(b"\t")
        mode, _, sha, size = details.split()
        if not mode.startswith(b"100"):
            continue
        if path.rpartition(b"/")[2] == ATTRIBUTES.encode():
            attributes.append(sha)
        if int(size) <= MAX_POINTER:
            small[path] = sha
    if not any(FILTER in text for text in await _contents(mirror, attributes)):
        return {}
    contents = await _contents(mirror, list(small.values()))
    found = ((path, parse_pointer(data)) for path, data in zip(small, contents, strict=True))
    return {path: pointer for path, pointer in found if pointer is not None}


async def commit_with_contents(mirror: Path, commit: str, contents: Mapping[str, LfsObject]) -> str:
    """Return a commit on top of `commit` that has these contents instead of pointers, by path."""
    listed = await git("ls-tree", "-rz", "--full-tree", commit, cwd=mirror, limit=MAX_LISTING)
    lines = []
    for entry in filter(None, listed.split(b"\0")):
        details, _, path = entry.partition(b"\t")
        item = contents.get(os.fsdecode(path))
        if item is not None:
            blob = await _write(mirror, item)
            lines.append(details.split()[0] + b" " + blob.encode() + b"\t" + path)
    return await commit_with_entries(mirror, commit, lines, "with contents of Git LFS")


async def store_in_tree(mirror: Path, objects: Iterable[LfsObject]) -> str:
    """Return a tree of a mirror with the contents of objects, for a bundle."""
    lines = [f"100644 blob {await _write(mirror, item)}\t{item.oid}\n" for item in objects]
    tree = await git("mktree", cwd=mirror, stdin="".join(lines).encode())
    return tree.decode().strip()


async def store_from_tree(mirror: Path, tree: str) -> None:
    """Write the contents in such a tree to the store of a mirror."""
    listed = await git("ls-tree", "-z", tree, cwd=mirror)
    blobs = [line.split()[2] for line in listed.split(b"\0") if line]
    for content in await _contents(mirror, blobs):
        await asyncio.to_thread(store_content, store_of(mirror), [content])


async def _write(mirror: Path, item: LfsObject) -> str:
    """Write a content of the store to the mirror; return the blob."""
    path = str(item.path(store_of(mirror)))
    return (await git("hash-object", "-w", "--no-filters", path, cwd=mirror)).decode().strip()


async def _contents(mirror: Path, objects: list[bytes]) -> list[bytes]:
    """Return the contents of blobs, in order."""
    names = b"".join(sha + b"\n" for sha in objects)
    output = await git("cat-file", "--batch", cwd=mirror, stdin=names, limit=MAX_LISTING)
    contents = []
    start = 0
    for _ in objects:
        end = output.index(b"\n", start)
        size = int(output[start:end].rpartition(b" ")[2])
        contents.append(output[end + 1 : end + 1 + size])
        start = end + size + 2
    return contents
