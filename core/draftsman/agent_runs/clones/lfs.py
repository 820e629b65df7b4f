"""Files of Git LFS in a mirror: the pointers of its commits, and the store of their contents."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
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
CHUNK: Final = 1024 * 1024
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
    blobs = await _write(mirror, contents.values())
    listed = await git("ls-tree", "-rz", "--full-tree", commit, cwd=mirror, limit=MAX_LISTING)
    lines = []
    for entry in filter(None, listed.split(b"\0")):
        details, _, path = entry.partition(b"\t")
        item = contents.get(os.fsdecode(path))
        if item is not None:
            lines.append(details.split()[0] + b" " + blobs[item] + b"\t" + path)
    return await commit_with_entries(mirror, commit, lines, "with contents of Git LFS")


async def store_in_tree(mirror: Path, objects: Iterable[LfsObject]) -> str:
    """Return a tree of a mirror with the contents of objects, for a bundle."""
    blobs = await _write(mirror, objects)
    lines = [b"100644 blob %s\t%s\n" % (blob, item.oid.encode()) for item, blob in blobs.items()]
    return (await git("mktree", cwd=mirror, stdin=b"".join(lines))).decode().strip()


async def store_from_tree(mirror: Path, tree: str) -> None:
    """Write the contents in such a tree to the store of a mirror."""
    with tempfile.TemporaryDirectory(dir=mirror) as folder:
        index = Path(folder, "index")
        files = Path(folder, "files")
        files.mkdir()
        env = {"GIT_DIR": mirror, "GIT_WORK_TREE": files, "GIT_INDEX_FILE": index}
        variables = {name: str(path) for name, path in env.items()}
        await git("read-tree", "--reset", "-u", tree, cwd=files, env=variables)
        await asyncio.to_thread(_store_files, store_of(mirror), files)


def _store_files(store: Path, folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb") as file:
            store_content(store, iter(partial(file.read, CHUNK), b""))


async def _write(mirror: Path, objects: Iterable[LfsObject]) -> dict[LfsObject, bytes]:
    """Write contents of the store to the mirror; return the blob of each."""
    items = [*dict.fromkeys(objects)]
    paths = "".join(f"{item.path(store_of(mirror))}\n" for item in items)
    options = ("-w", "--no-filters", "--stdin-paths")
    output = await git("hash-object", *options, cwd=mirror, stdin=paths.encode())
    return dict(zip(items, output.split(), strict=True))


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
