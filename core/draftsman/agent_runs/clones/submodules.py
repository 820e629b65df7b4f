"""Submodules in the clone of a run: files that its programs may read, and that are no work."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from draftsman.agent_runs.clones.git import MAX_LISTING, git, git_failure, git_result
from draftsman.agent_runs.clones.mirror import fetch_base, open_mirror
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.tree_size import check_tree_size
from draftsman.errors import Failure
from draftsman.sandbox.run_sandbox import change_owner
from draftsman.settings.quotas import QuotaSettings

GITLINK: Final = b"160000"
OpenSource = Callable[[str], RepoSource]
"""Returns the source at a path or URL."""


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule of a commit: its folder, its commit, and the URL in `.gitmodules` if any."""

    path: bytes
    commit: str
    url: str | None

    def source(self, parent: RepoSource, open_source: OpenSource) -> RepoSource:
        """Return its source; raises Failure for a URL that the repository may not name.

        `.gitmodules` is a file of the repository: of a folder of this machine it may name only
        other folders of the same owner, of a URL no folder.
        """
        if not self.url:
            raise git_failure("it has no URL in .gitmodules", "url")
        source = open_source(absolute_url(parent.location, self.url))
        if source.is_local and not (parent.is_local and _owner(source) == _owner(parent)):
            raise git_failure(f"{self.url} is a folder of this machine", "url")
        return source


@dataclass(slots=True)
class CheckedOutSubmodule:
    """A submodule in a clone, with the mirror that it is from."""

    path: bytes
    mirror: Path
    ref: str
    tree: Path
    index: Path
    place: str = ""
    """Where the tree really is."""
    files: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """Size and time of each file, as it was checked out."""

    async def is_changed(self) -> bool:
        """Return whether its files have changed, or there are others that it does not ignore."""
        if self._is_replaced():
            return True
        options = ("--others", "--exclude-standard", "--directory", "-z")
        try:
            if await git("ls-files", *options, cwd=self.tree, env=self._environment()):
                return True
        except Failure:  # too many files, or such as git does not read
            return True
        return any(_state(self.tree, name) != state for name, state in self.files.items())

    def protect(self) -> None:
        """Let programs of the run read the files, and not write them.

        If they have the user id of the worker, they can give themselves the right to write.
        """
        if self._is_replaced():
            return
        if os.geteuid() == 0:
            change_owner(self.tree, 0)
        for folder, _, names in os.walk(self.tree):
            Path(folder).chmod(0o755)
            for name in names:
                path = Path(folder, name)
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode):
                    path.chmod(0o555 if mode & 0o100 else 0o444)

    def _is_replaced(self) -> bool:
        """Return whether a program has moved it, or put a link in its place."""
        return os.path.realpath(self.tree) != self.place or not self.tree.is_dir()

    async def remove_ref(self) -> None:
        """Let its mirror delete the commit."""
        await git("update-ref", "-d", self.ref, cwd=self.mirror)

    async def fill(self, commit: str) -> None:
        """Check out the files."""
        env = self._environment()
        await git("read-tree", "--reset", "-u", commit, cwd=self.tree, env=env)
        listed = await git("ls-files", "-z", cwd=self.tree, env=env, limit=MAX_LISTING)
        for name in filter(None, listed.split(b"\0")):
            self.files[name] = _state(self.tree, name)

    def _environment(self) -> dict[str, str]:
        env = {"GIT_DIR": self.mirror, "GIT_WORK_TREE": self.tree, "GIT_INDEX_FILE": self.index}
        return {name: str(path) for name, path in env.items()}


async def submodules_of(mirror: Path, commit: str) -> list[Submodule]:
    """Return the submodules of a commit."""
    listed = await git("ls-tree", "-rz", "--full-tree", commit, cwd=mirror, limit=MAX_LISTING)
    links = {}
    for line in listed.split(b"\0"):
        details, _, path = line.partition(b"\t")
        if details.startswith(GITLINK):
            links[path] = details.split()[2].decode()
    urls = await _urls(mirror, commit) if links else {}
    return [Submodule(path, sha, urls.get(path)) for path, sha in links.items()]


async def check_out(
    submodule: Submodule,
    source: RepoSource,
    *,
    data_dir: Path,
    clone: Path,
    index: Path,
    ref: str,
    quotas: QuotaSettings,
) -> CheckedOutSubmodule:
    """Check a submodule out into a clone; raises Failure with origin `git`, and `quota:tree`.

    The clone may have the work of an agent, with a link in the place of a folder.
    """
    tree = clone / os.fsdecode(submodule.path)
    place = str(clone.resolve() / os.fsdecode(submodule.path))
    if os.path.realpath(tree) != place:
        raise git_failure("its folder is a link", "tree")
    mirror = await open_mirror(data_dir, source)
    await fetch_base(source, mirror, submodule.commit, ref)
    await check_tree_size(mirror, submodule.commit, quotas)
    try:
        tree.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise git_failure(f"its folder is a file: {error.strerror}", "tree") from None
    checked_out = CheckedOutSubmodule(submodule.path, mirror, ref, tree, index, place)
    await checked_out.fill(submodule.commit)
    return checked_out


def absolute_url(parent: str, url: str) -> str:
    """Return the URL of a submodule, which may be relative to that of its parent."""
    if not url.startswith(("./", "../")):
        return url
    base = parent.rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("../"):
            base, mark, _ = base.rpartition("/")
            if not mark:
                raise git_failure(f"{url} leads out of {parent}", "url")
        url = url.partition("/")[2]
    return f"{base}/{url}"


async def _urls(mirror: Path, commit: str) -> dict[bytes, str]:
    """Return the URLs in the `.gitmodules` of a commit, by path."""
    names = r"^submodule\..*\.(path|url)$"
    options = ("--blob", f"{commit}:.gitmodules", "-z", "--get-regexp", names)
    code, output, _ = await git_result("config", *options, cwd=mirror)
    values: dict[bytes, dict[bytes, bytes]] = {}
    for entry in output.split(b"\0") if code == 0 else ():
        key, _, value = entry.partition(b"\n")
        name, _, kind = key.rpartition(b".")
        values.setdefault(name, {})[kind] = value
    return {
        item[b"path"]: os.fsdecode(item[b"url"])
        for item in values.values()
        if item.keys() >= {b"path", b"url"}
    }


def _owner(source: RepoSource) -> int:
    return Path(source.location).stat().st_uid


def _state(tree: Path, name: bytes) -> tuple[int, int]:
    """Return size and time of a file; (-1, 0) without it."""
    try:
        status = (tree / os.fsdecode(name)).lstat()
    except OSError:
        return -1, 0
    return status.st_size, status.st_mtime_ns
