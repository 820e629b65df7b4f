"""Workspaces: the clone of each run, and snapshots of its files.

An agent may write anything into its clone: configuration, hooks, filters, other repositories. So
the worker's git never reads the clone's own repository: the worker has a *mirror* for each source,
and reads the clone as a plain folder of files, with the mirror as the repository and an index that
the agent cannot access.

    DATA/mirrors/<digest of the source>.git
    DATA/runs/D-142.3-<suffix of the job's id>/{repo,home,index}
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from draftsman.agent_runs.clones import home_files
from draftsman.agent_runs.clones.clone_parts import CloneParts, MissingPart, missing
from draftsman.agent_runs.clones.commits import ChangesCommit, CommitIdentity, JobBranches
from draftsman.agent_runs.clones.git import (
    COMMITTER,
    MAX_LISTING,
    config_variables,
    explain_error,
    git,
    git_failure,
    git_result,
    git_status,
    init,
    object_format,
)
from draftsman.agent_runs.clones.left_out import OWN_REPOSITORY, SUBMODULE, LeftOut, described
from draftsman.agent_runs.clones.lfs import (
    AGENT_CONFIG,
    commit_with_contents,
    filter_config,
    pointers_of,
    prune,
    store_from_tree,
    store_in_tree,
    store_of,
)
from draftsman.agent_runs.clones.lfs_filter import LfsObject
from draftsman.agent_runs.clones.lfs_transfer import can_transfer, download, upload
from draftsman.agent_runs.clones.mirror import commit_time, fetch_base, open_mirror
from draftsman.agent_runs.clones.mixed_commits import mixed_commit
from draftsman.agent_runs.clones.nested_repositories import HiddenRepositories, make_readable
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.submodules import CheckedOutSubmodule, check_out, submodules_of
from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.agent_runs.clones.tree_size import check_contents_size, check_tree_size
from draftsman.errors import Failure
from draftsman.formats.worker_paths import PathRemover, path_remover
from draftsman.ids import job_name, run_name
from draftsman.repos.check_files import ChangedFile
from draftsman.sandbox.run_sandbox import change_owner, open_run_sandbox
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings.quotas import QuotaSettings
from draftsman.settings.sandbox import SandboxSettings

# Commits of a mirror without a working tree: their files, and those with the files of two.


MAX_JUDGED: Final = 1024 * 1024
"""Maximum bytes of a content of Git LFS in which a policy looks for secrets."""
ALL_JUDGED: Final = 8 * MAX_JUDGED
"""Maximum bytes of all of them."""
MAX_READ: Final = 256 * 1024
"""Maximum bytes of a file of a commit that is read for its settings."""
GITLINK: Final = b"160000"


@dataclass(frozen=True, slots=True)
class CommitTree:
    """The files of a commit, by path: the object and its bytes; links and repositories not."""

    mirror: Path
    entries: dict[str, tuple[str, int]]

    def folders_with(self, name: str) -> list[str]:
        """Return the folders that have a file of this name; "." for the top folder."""
        paths = (PurePosixPath(path) for path in self.entries if _name(path) == name)
        return [str(path.parent) for path in paths]

    async def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of the files that it has, of at most MAX_READ bytes each."""
        found = {path: self.entries[path] for path in paths if path in self.entries}
        small = {path: sha for path, (sha, size) in found.items() if size <= MAX_READ}
        if not small:
            return {}
        names = "".join(f"{sha}\n" for sha in small.values())
        output = await git(
            "cat-file", "--batch", cwd=self.mirror, stdin=names.encode(), limit=MAX_LISTING
        )
        contents = {}
        for path in small:
            header, _, rest = output.partition(b"\n")
            size = int(header.rpartition(b" ")[2])
            contents[path] = rest[:size]
            output = rest[size + 1 :]
        return contents


async def read_tree(mirror: Path, commit: str) -> CommitTree:
    """Return the files of a commit of a mirror."""
    listed = await git("ls-tree", "-rlz", "--full-tree", commit, cwd=mirror, limit=MAX_LISTING)
    entries = {}
    for line in filter(None, listed.split(b"\0")):
        details, _, name = line.partition(b"\t")
        mode, _, sha, size = details.split()
        if mode not in {b"120000", GITLINK}:
            entries[os.fsdecode(name)] = (sha.decode(), int(size))
    return CommitTree(mirror, entries)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


# Safe reading of a file at a path from an agent.


MAX_ARTIFACT: Final = 25 * 1024 * 1024
"""Maximum bytes of an artifact."""


def read_artifact(roots: tuple[Path, ...], path: str) -> bytes:
    """Return the file's content; a relative path is below the first root.

    Raises Failure `artifact` for a path outside the roots, and a file that is not regular or too
    large.
    """
    absolute = Path(os.path.normpath(roots[0] / path))
    root = next((root for root in roots if absolute.is_relative_to(root)), None)
    if root is None:
        raise _artifact_failure(path, "is outside the workspace and $HOME")
    try:
        with open(_open_beneath(root, absolute.relative_to(root)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_ARTIFACT:
                raise _artifact_failure(
                    path, f"is not a regular file of at most {MAX_ARTIFACT:,} bytes"
                )
            return file.read(MAX_ARTIFACT)
    except (OSError, ValueError) as error:
        raise _artifact_failure(path, getattr(error, "strerror", None) or str(error)) from None


def _open_beneath(root: Path, relative: Path) -> int:
    """Open a file without following links: an agent could point a link anywhere."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(root, flags | os.O_DIRECTORY)
    for part in relative.parts:
        try:
            child = os.open(part, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _artifact_failure(path: str, problem: str) -> Failure:
    return Failure(f"artifact {path[:200]!r} {problem}", origin="agent", code="artifact")


STAGED_GITLINK: Final = re.compile(rb"[^?] 160000 ")
"""Begins a submodule in the output of `git ls-files -t --stage`."""
CLONE_CONFIG: Final = "[user]\n\tname = {NAME}\n\temail = {EMAIL}\n[gc]\n\tauto = 0\n"
SHORTSTAT: Final = re.compile(r"(\d+) (file|insertion|deletion)")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The work in progress as a commit on top of its base, in the mirror.

    `skipped` are repositories inside the tree: submodules of the base, which stay unchanged, and
    clones that the agent created, which are not part of the work.
    """

    commit: str
    tree: str
    base_sha: str
    files_changed: int
    insertions: int
    deletions: int
    parents: tuple[str, ...] = ()
    """The parents of the commit that differ from its base, as of the workspace."""
    skipped: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Paths of the work that it does not have, with the reason: of `skipped` those with files."""
    refused: tuple[str, ...] = ()
    """Paths that git cannot record, with the reason: the work cannot be completed without them."""
    included: Mapping[str, str] = field(default_factory=dict)
    """Paths of the work that it would not have, but for `includes_all` of its workspace, with the
    reason."""

    @property
    def all_left_out(self) -> tuple[str, ...]:
        """What git leaves out, with the reason: also what is included."""
        included = {os.fsencode(path): reason for path, reason in self.included.items()}
        return (*described(included), *self.left_out)


@dataclass(frozen=True, slots=True)
class ContinuedBranch:
    """A branch that a job continues."""

    name: str | None = None
    """None for the branch of the job."""
    parents: tuple[str, ...] = ()
    """The parents of the next commit: the head, and the base if that has to be merged."""
    work: str | None = None
    """A commit of the mirror with the work on the branch; None for the work of the bundle."""
    base: str | None = None
    """The commit below that work; None for the base of the job."""


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """A file of a commit that `git add` changes or refuses right after its checkout."""

    entry: bytes | None
    """Its line for `git update-index`; None if it is refused, so that the index has it still."""
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Workspace:
    """The clone of a run. Create it with `prepare`; `remove` it at the end."""

    folder: Path
    mirror: Path
    source: RepoSource
    job: int
    run: int
    tag: str
    base_sha: str
    date: str
    sandbox: RunSandbox | None = None
    """The sandbox of its programs; None before `with_sandbox`."""
    own_branch: str | None = None
    """The branch of the work; None: `draftsman/D-<job>`."""
    parents: tuple[str, ...] = ()
    """The parents of its commits, of which the first is the head of the branch; else the base."""
    includes_all: bool = False
    """Whether snapshots have the files of repositories that the agent made, and what it may not
    read, as ordinary files."""
    _included: dict[bytes, str] = field(default_factory=dict, repr=False, compare=False)
    """What they have for that, also of earlier runs, with the reason."""
    changes: ChangesCommit | None = None
    """The base commit, if it has changes of the requester."""
    identity: CommitIdentity = field(default_factory=CommitIdentity)
    """Author, committer and key of its commits."""
    branches: JobBranches = field(default_factory=JobBranches)
    """The names of the branches of jobs in this repository."""
    parts: CloneParts = field(default_factory=CloneParts)
    """What the clone has besides the files of its commit."""
    missing_parts: list[MissingPart] = field(default_factory=list, repr=False, compare=False)
    """What it does not have of those, and of others that its profile does not want."""
    _of_source: set[LfsObject] = field(default_factory=set, repr=False, compare=False)
    """Contents of Git LFS that the source has."""
    _submodules: list[CheckedOutSubmodule] = field(default_factory=list, repr=False, compare=False)
    _objects: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The objects of its refs in the mirror, which nothing else writes: `work`, `home` and
    `contents`."""
    _converted: dict[bytes, ConvertedFile] = field(default_factory=dict, repr=False, compare=False)
    """Files that `git add` changes or refuses although nobody has touched them, by path."""

    @classmethod
    async def prepare(
        cls,
        data_dir: Path,
        source: RepoSource,
        *,
        job: int,
        run: int,
        tag: str = "",
        base: str | None = None,
        bundle: bytes | None = None,
        restored: bool = True,
        created_at: datetime | None = None,
        branch: ContinuedBranch = ContinuedBranch(),
        quotas: QuotaSettings | None = None,
        includes_all: bool = False,
        included: Mapping[str, str] | None = None,
        changes: ChangesCommit | None = None,
        identity: CommitIdentity | None = None,
        branches: JobBranches | None = None,
        parts: CloneParts | None = None,
    ) -> Self:
        """Create the clone on the branch of the job, `draftsman/D-<job>`, or on another `branch`.

        `tag` distinguishes jobs with the same number in several databases. `base` is a ref or a
        full commit id (None: the source's HEAD); a base of the branch replaces it. A `bundle` of
        an earlier run's work is applied, uncommitted, and its files of the home are written;
        without `restored`, only by `restore`; `included` is that of its snapshot. The commits of
        all runs of the job have the date `created_at` (None: the date of the base), so that the
        same work gets the same commit id. `parts` that cannot be had are `missing_parts`.
        Raises Failure with origin `git`, and `quota:tree` for a tree above the quotas.
        """
        mirror = await open_mirror(data_dir, source)
        name = clone_name(job, run, tag)
        base_sha = await fetch_base(source, mirror, branch.base or base, ref_of(name, "base"))
        date_time = created_at or datetime.fromtimestamp(await commit_time(mirror, base_sha), UTC)
        folder = data_dir / "runs" / name
        date = f"{int(date_time.timestamp())} +0000"
        self = cls(
            folder=folder,
            mirror=mirror,
            source=source,
            job=job,
            run=run,
            tag=tag,
            base_sha=base_sha,
            date=date,
            own_branch=branch.name,
            parents=branch.parents,
            includes_all=includes_all,
            changes=changes,
            parts=parts or CloneParts(),
            identity=identity or CommitIdentity(),
            branches=branches or JobBranches(),
        )
        self._included.update({os.fsencode(path): why for path, why in (included or {}).items()})
        try:
            await asyncio.to_thread(_create_folders, folder)
            unpacked = await self._unpack(bundle) if bundle else None
            if branch.work is not None:
                await self._set_ref("work", branch.work)
            work = branch.work or unpacked or base_sha
            quotas = quotas or QuotaSettings()
            for commit in {base_sha, work}:
                await check_tree_size(mirror, commit, quotas)
            await self._fetch_contents({base_sha, *branch.parents}, work, quotas)
            await self._clone(work if restored else base_sha)
            await self._check_out_submodules(data_dir, quotas)
            if restored and bundle:
                await self._restore_home()
        except BaseException:
            with contextlib.suppress(Failure, OSError):
                await asyncio.shield(self.remove())
            raise
        return self

    async def with_sandbox(self, settings: SandboxSettings) -> Self:
        """Return the workspace with a sandbox; as root, this changes the owner of the clone.

        Raises Failure `no_sandbox` or `no_uid`.
        """
        sandbox = await open_run_sandbox(settings, repo=self.path, home=self.home)
        await self._protect_submodules()
        return replace(self, sandbox=sandbox)

    async def _protect_submodules(self) -> None:
        for submodule in self._submodules:
            await asyncio.to_thread(submodule.protect)

    @property
    def path(self) -> Path:
        """The clone's working tree."""
        return self.folder / "repo"

    @property
    def home(self) -> Path:
        """The agent's home folder."""
        return self.folder / "home"

    def relative(self, value: Any) -> Any:
        """Return the JSON value with paths of this run made relative to the clone, or to `~`."""
        return self.path_remover()(value)

    def path_remover(self) -> PathRemover:
        """Return `relative` for many values, with the folders as they are now."""
        to_sandbox_path = self.sandbox.sandbox_path if self.sandbox else str
        folders = []
        for folder, prefix in ((self.path, ""), (self.home, "~/"), (self.folder, "")):
            roots = {str(folder), str(folder.resolve()), to_sandbox_path(folder.resolve())}
            longest_first = sorted(map(re.escape, roots), key=len, reverse=True)
            folders.append((longest_first, prefix))
        return path_remover(folders)

    @property
    def sandbox_path(self) -> str:
        """The clone's path inside the sandbox."""
        return self.sandbox.sandbox_path(self.path.resolve()) if self.sandbox else str(self.path)

    @property
    def branch(self) -> str:
        """The branch of the job's work."""
        return self.own_branch or f"draftsman/{job_name(self.job)}"

    async def snapshot(self, message: str) -> Snapshot:
        """Commit the current tree in the mirror; `files_changed` is 0 for an unchanged tree.

        Ignored files are left out. Raises Failure, `workspace_gone` among others.
        """
        if self.path.is_symlink() or not self.path.is_dir():
            raise git_failure("the agent deleted its workspace", "workspace_gone")
        hidden = HiddenRepositories(self.path, self.folder / "aside")
        try:
            links, clones = await self._nested_repositories()
            while self.includes_all and (found := await asyncio.to_thread(hidden.hide, clones)):
                self._included.update(dict.fromkeys(found, OWN_REPOSITORY))
                links, clones = await self._nested_repositories()
            skipped = sorted({*links, *clones})
            left_out = await self._add_all(skipped)
            for name in await self._undo_conversions():
                left_out.refused.pop(name, None)
            tree = (await self._run_git("write-tree")).decode().strip()
        finally:
            await asyncio.to_thread(hidden.restore)
        checked_out = {item.path: item for item in self._submodules}
        for name in skipped:
            if (submodule := checked_out.get(name)) is not None:
                if await submodule.is_changed():
                    left_out.unread[name] = SUBMODULE
            elif await asyncio.to_thread(_has_files, self.path / os.fsdecode(name)):
                left_out.unread[name] = OWN_REPOSITORY
        return replace(
            await self.commit(tree, message),
            skipped=tuple(os.fsdecode(name) for name in skipped),
            left_out=described(left_out.unread),
            refused=described(left_out.refused),
            included=await self._still_included(),
        )

    async def without_included(self, snapshot: Snapshot, message: str) -> Snapshot:
        """Return the work without what `includes_all` has added to it: as if git had left it out.

        Those paths are then as in the base.
        """
        if not snapshot.included:
            return snapshot
        paths = [f":(top,literal){path}" for path in snapshot.included]
        options = ("ls-files", "-z", "--full-name", "--with-tree", self.base_sha, "--", *paths)
        listed = (await self._run_git(*options)).split(b"\0")
        names = [os.fsdecode(name) for name in filter(None, listed)]
        rest = await self.mixed(snapshot.commit, self.base_sha, names)
        tree = (await git("rev-parse", f"{rest}^{{tree}}", cwd=self.mirror)).decode().strip()
        return replace(
            await self.commit(tree, message),
            skipped=snapshot.skipped,
            left_out=snapshot.all_left_out,
            refused=snapshot.refused,
        )

    async def _still_included(self) -> dict[str, str]:
        """Return what the index has only because of `includes_all`; forget what is gone."""
        for name in sorted(self._included):
            is_inside = any(name.startswith(other + b"/") for other in self._included)
            if is_inside or not await self._run_git(
                "ls-files", "-z", "--", f":(top,literal){os.fsdecode(name)}"
            ):
                self._included.pop(name)
        return {os.fsdecode(name): reason for name, reason in self._included.items()}

    async def _add_all(self, skipped: Sequence[bytes]) -> LeftOut:
        """Add all files of the tree to the index, with `includes_all` also what is not readable."""
        left_out = await self._add("-A", skipped)
        while self.includes_all and left_out.unread:
            opened = [name for name in left_out.unread if make_readable(self.path, name)]
            if not opened:
                break
            self._included.update({name: left_out.unread[name] for name in opened})
            left_out = await self._add("-A", skipped)
        return left_out

    async def _add(self, option: str, skipped: Sequence[bytes], index: str = "index") -> LeftOut:
        """Add the files of the tree to an index, besides those that git cannot record."""
        left_out = LeftOut()
        while True:
            names = {*skipped, *left_out.unread, *left_out.refused}
            names = {name for name in names if not _is_beyond_link(self.path, name)}
            excluded = [b":(exclude,top,literal)" + name for name in sorted(names)]
            paths = b"".join(path + b"\0" for path in (b":(top)", *excluded))
            options = (option, "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
            code, _, errors = await git_result(
                "add", *options, cwd=self.path, env=self._environment(index), stdin=paths
            )
            is_new = left_out.add_errors(errors)
            if code == 0 or (code == 1 and is_new):
                return left_out
            if not is_new:
                raise explain_error("add", errors.decode(errors="replace"))

    async def _find_converted(self, commit: str) -> None:
        """Find the files of the commit that was checked out which `git add` changes.

        Attributes convert files, and a commit may have files that are converted differently.
        """
        self._converted.clear()
        env = self._environment("checked_out")
        attributes = (":(top,glob)**/.gitattributes", ":(top).gitattributes")
        await git("read-tree", commit, cwd=self.path, env=env)
        if await git("ls-files", "-z", "--", *attributes, cwd=self.path, env=env):
            entries: dict[bytes, bytes | None] = {}
            entries |= dict.fromkeys((await self._add("-u", (), "checked_out")).refused)
            options = ("--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "-R")
            output = await git("diff", *options, commit, cwd=self.path, env=env)
            words = output.split(b"\0")
            for details, path in zip(words[::2], words[1::2], strict=False):
                _, mode, _, sha, _ = details.split(b" ")
                entries[path] = mode + b" " + sha + b"\t" + path
            prints = await asyncio.to_thread(_fingerprints, self.path, list(entries))
            for path, entry in entries.items():
                self._converted[path] = ConvertedFile(entry, prints[path])
        (self.folder / "checked_out").unlink()

    async def _undo_conversions(self) -> list[bytes]:
        """Let the index have the files that nobody has touched as they were; return their paths."""
        now = await asyncio.to_thread(_fingerprints, self.path, list(self._converted))
        names = [path for path, file in self._converted.items() if now[path] == file.fingerprint]
        entries = [entry for name in names if (entry := self._converted[name].entry) is not None]
        if entries:
            lines = b"".join(entry + b"\0" for entry in entries)
            await self._run_git("update-index", "-z", "--index-info", stdin=lines)
        return names

    async def commit(self, tree: str, message: str) -> Snapshot:
        """Return a tree of the mirror as the work, on top of the base."""
        commit = await self._commit(tree, message)
        await self._set_ref("work", commit)
        counts = await self._count(commit)
        return Snapshot(commit, tree, self.base_sha, *counts, parents=self.parents)

    async def sign(self, snapshot: Snapshot, message: str) -> Snapshot:
        """Return the work with a signed commit, if the worker has a key for commits.

        Raises Failure `signing`.
        """
        if self.identity.signing_key is None:
            return snapshot
        commit = await self._commit(snapshot.tree, message, signed=True)
        await self._set_ref("work", commit)
        return replace(snapshot, commit=commit)

    async def store_home(self, paths: Sequence[str]) -> None:
        """Store files of the home, for the next `bundle`; raises Failure `home_files`."""
        archive = await asyncio.to_thread(home_files.pack, self.home, paths)
        blob = await git("hash-object", "-w", "--stdin", cwd=self.mirror, stdin=archive)
        await self._set_ref("home", blob.decode().strip())

    async def bundle(self, snapshot: Snapshot) -> bytes | None:
        """Return the work and the stored files of the home as a git bundle, for `prepare`.

        The work is on top of the base. None without changes and files.
        """
        await self._set_ref("work", snapshot.commit)
        objects = [self.ref("work")] if snapshot.files_changed else []
        if contents := await self._new_contents(snapshot):
            tree = await store_in_tree(self.mirror, contents)
            await self._set_ref("contents", tree)
            objects.append(self.ref("contents"))
        if "home" in self._objects:
            objects.append(self.ref("home"))
        if not objects:
            return None
        if snapshot.files_changed:
            objects.append(f"^{snapshot.base_sha}")
        return await git("bundle", "create", "--quiet", "-", *objects, cwd=self.mirror)

    async def check_out(self, commit: str) -> None:
        """Replace the tracked files by those of a commit of the mirror; other files stay."""
        await self._run_git("read-tree", "--reset", "-u", commit)
        if self.sandbox is not None and self.sandbox.uid is not None:
            await asyncio.to_thread(change_owner, self.path, self.sandbox.uid)
            await self._protect_submodules()

    async def keep_tracked(self) -> None:
        """Let `undo_changes` restore the tracked files as they are now."""
        await self._add("-u", ())

    async def undo_changes(self) -> int:
        """Restore the tracked files as `keep_tracked` found them; return how many had changed."""
        options = ("--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all")
        changed = (await self._run_git("diff", *options)).count(b"\0")
        if changed:
            await self.check_out((await self._run_git("write-tree")).decode().strip())
        return changed

    async def restore(self) -> None:
        """Apply the work of the bundle, uncommitted, and write its files of the home.

        They replace files that commands made meanwhile.
        """
        if (work := self._objects.get("work")) is not None:
            await self.check_out(work)
            await self._run_git("read-tree", "--reset", self.base_sha)
            await self._find_converted(work)
        await self._restore_home()
        if self.sandbox is not None and self.sandbox.uid is not None:
            await asyncio.to_thread(change_owner, self.home, self.sandbox.uid)

    async def mixed(self, commit: str, other: str, paths: Sequence[str]) -> str:
        """Return a commit in the mirror: the files of `commit`, but these paths of `other`."""
        return await mixed_commit(self.mirror, commit, other, paths)

    async def diff(self, snapshot: Snapshot) -> bytes:
        """Return the work as a patch for `git apply`, binary files included."""
        return await self.patch(snapshot.commit)

    async def patch(self, commit: str) -> bytes:
        """Return the changes of a commit of the work, as a patch for `git apply`."""
        return await self._diff(commit, "--binary", "--full-index")

    async def patch_of_changes(self) -> bytes:
        """Return the changes of the requester that the work has below it; empty without any."""
        if self.changes is None:
            return b""
        commit = self.changes.id
        options = ("--binary", "--full-index", "--no-renames")
        return await self._diff(commit, *options, base=f"{commit}^")

    async def text_patch(self, snapshot: Snapshot) -> bytes:
        """Return the work as a patch with the lines of binary files and targets of moved links."""
        return await self._diff(snapshot.commit, "--text", "--no-renames")

    async def changed_files(self, commit: str) -> list[ChangedFile]:
        """Return the files that a commit of the work changes; a renamed file has both names."""
        output = await self._diff(commit, "--raw", "-z", "--no-renames", "--abbrev")
        words = output.split(b"\0")
        return [
            ChangedFile(os.fsdecode(path), *details.decode()[1:].split(" ")[:2])
            for details, path in zip(words[::2], words[1::2], strict=False)
        ]

    async def tree(self, commit: str) -> CommitTree:
        """Return the files of a commit of the mirror."""
        return await read_tree(self.mirror, commit)

    async def ignored(self, tree: CommitTree, paths: Sequence[str]) -> list[str]:
        """Return the paths that the ignore files of a tree exclude."""
        rules = await tree.read([path for path in tree.entries if _name(path) == ".gitignore"])
        if not rules or not paths:
            return []
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            for path, text in rules.items():
                file = Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text)
            env = {"GIT_DIR": str(self.mirror), "GIT_WORK_TREE": folder}
            listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
            options = ("check-ignore", "--no-index", "--stdin", "-z")
            _, output = await git_status(*options, cwd=Path(folder), env=env, stdin=listed, most=1)
        return [os.fsdecode(path) for path in output.split(b"\0") if path]

    async def has_file(self, commit: str, path: str) -> bool:
        """Return whether a commit of the mirror has a file."""
        names = await git("ls-tree", "--full-tree", commit, "--", path, cwd=self.mirror)
        return bool(names)

    async def binaries(self, snapshot: Snapshot) -> list[str]:
        """Return the binary files that the work adds or changes."""
        output = await self._diff(
            snapshot.commit, "--numstat", "-z", "--no-renames", "--diff-filter=AMT"
        )
        rows = [row.split(b"\t", 2) for row in output.split(b"\0") if row]
        return [os.fsdecode(row[2]) for row in rows if row[0] == b"-"]

    async def bundle_commit(self) -> str | None:
        """Return the commit of the bundle that was passed to `prepare`; None without changes."""
        return self._objects.get("work")

    async def diffstat(self, snapshot: Snapshot) -> str:
        """Return the output of `git diff --stat` for the work."""
        return (await self._diff(snapshot.commit, "--stat=80")).decode(errors="replace")

    async def publish(self, snapshot: Snapshot, expected_sha: str | None = None) -> None:
        """Push the snapshot to the job's branch in the source.

        `expected_sha` is the required commit of the branch (None: it must not exist); nothing
        happens if the branch is at the snapshot already. Raises Failure `branch_moved`,
        `branch_checked_out`, …
        """
        if contents := await self._new_contents(snapshot):
            await upload(self.source, store_of(self.mirror), contents)
        await self.source.push(self.mirror, snapshot.commit, self.branch, expected_sha)

    async def read_artifact(self, path: str) -> bytes:
        """Return a file of the workspace or the agent's home; relative paths are in the workspace.

        Raises Failure `artifact` for another path, and a file that is not regular or over 25 MB.
        """
        host_path = self.sandbox.host_path(path) if self.sandbox else path
        return await asyncio.to_thread(read_artifact, (self.path, self.home), host_path)

    async def remove(self) -> None:
        """Delete the clone and its refs in the mirror; a published branch stays."""
        try:
            await asyncio.to_thread(remove_tree, self.folder)
        finally:
            if self.sandbox is not None:
                self.sandbox.close()
        for submodule in self._submodules:
            await submodule.remove_ref()
        await asyncio.to_thread(prune, store_of(self.mirror))
        refs = await git("for-each-ref", "--format=delete %(refname)", self.ref(), cwd=self.mirror)
        await git("update-ref", "--stdin", cwd=self.mirror, stdin=refs)
        await git("-c", "gc.auto=6700", "gc", "--auto", "--quiet", cwd=self.mirror)

    def ref(self, name: str = "") -> str:
        """Return the name of a ref of this run in the mirror, which `remove` deletes."""
        return ref_of(self.folder.name, name)

    async def _run_git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git on the agent's files with the mirror as repository and a private index."""
        return await git(*arguments, cwd=self.path, env=self._environment(), stdin=stdin)

    def _environment(self, index: str = "index") -> dict[str, str]:
        file = self.folder / index
        env = {"GIT_DIR": self.mirror, "GIT_WORK_TREE": self.path, "GIT_INDEX_FILE": file}
        return {name: str(path) for name, path in env.items()} | self._filter()

    def _filter(self) -> dict[str, str]:
        """Return the variables by which git converts files of Git LFS."""
        return config_variables(filter_config(self.mirror)) if self.parts.lfs else {}

    async def _nested_repositories(self) -> tuple[list[bytes], list[bytes]]:
        """Return submodules of the base, and repositories that the agent made.

        git would read their configuration.
        """
        options = ("-t", "--stage", "--others", "--exclude-standard", "-z")
        files = (await self._run_git("ls-files", *options)).split(b"\0")
        links = [line.partition(b"\t")[2] for line in files if STAGED_GITLINK.match(line)]
        clones = [line[2:-1] for line in files if line.startswith(b"? ") and line.endswith(b"/")]
        return links, clones

    async def _commit(self, tree: str, message: str, *, signed: bool = False) -> str:
        parents = self.parents or (self.base_sha,)
        commit = self.identity.commit
        return await commit(self.mirror, tree, parents, message, self.date, signed=signed)

    async def _count(self, commit: str) -> tuple[int, int, int]:
        output = await git("diff", "--shortstat", self.base_sha, commit, cwd=self.mirror)
        counts = {noun: int(number) for number, noun in SHORTSTAT.findall(output.decode())}
        return counts.get("file", 0), counts.get("insertion", 0), counts.get("deletion", 0)

    async def _diff(self, commit: str, *options: str, base: str | None = None) -> bytes:
        return await git(
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            *options,
            base or self.base_sha,
            commit,
            cwd=self.mirror,
        )

    async def _fetch_contents(self, of_source: set[str], work: str, quotas: QuotaSettings) -> None:
        """Fetch what the pointers of the commits of the source and of the work stand for."""
        pointers: dict[bytes, LfsObject] = {}
        for commit in of_source:
            pointers |= await pointers_of(self.mirror, commit)
        self._of_source.update(pointers.values())
        if work not in of_source:
            pointers |= await pointers_of(self.mirror, work)
        if not pointers:
            return
        absent = set(pointers)
        reason = "set lfs = true in its profile"
        if self.parts.lfs:
            reason = "git:// URLs have none"
            if can_transfer(self.source):
                reason = "the source does not have them"
                check_contents_size(pointers.values(), quotas)
                store = store_of(self.mirror)
                gone = {*await download(self.source, store, pointers.values())}
                absent = {path for path, item in pointers.items() if item in gone}
        if absent:
            self.missing_parts.append(missing("lfs", absent, reason))

    async def _check_out_submodules(self, data_dir: Path, quotas: QuotaSettings) -> None:
        """Check out the submodules of the base, of which the work changes none."""
        submodules = await submodules_of(self.mirror, self.base_sha)
        open_source = self.parts.submodules
        if submodules and open_source is None:
            paths = [item.path for item in submodules]
            reason = "set submodules = true in its profile"
            self.missing_parts.append(missing("submodules", paths, reason))
            return
        for number, item in enumerate(submodules):
            assert open_source is not None  # noqa: S101 - see above
            try:
                checked_out = await check_out(
                    item,
                    item.source(self.source, open_source),
                    data_dir=data_dir,
                    clone=self.path,
                    index=self.folder / f"submodule-{number}",
                    ref=self.ref(f"submodule-{number}"),
                    quotas=quotas,
                )
            except Failure as error:
                self.missing_parts.append(missing("submodules", [item.path], str(error)))
            else:
                self._submodules.append(checked_out)

    async def changed_contents(self, snapshot: Snapshot) -> dict[str, LfsObject]:
        """Return the objects of Git LFS that the work adds or changes, by path."""
        pointers = await pointers_of(self.mirror, snapshot.commit)
        if not pointers:
            return {}
        changed = await self.changed_files(snapshot.commit)
        paths = (file.path for file in changed)
        return {path: pointers[name] for path in paths if (name := os.fsencode(path)) in pointers}

    async def with_contents(
        self, snapshot: Snapshot, contents: Mapping[str, LfsObject]
    ) -> tuple[Snapshot, dict[str, int]]:
        """Return the work with contents of Git LFS instead of pointers, to be judged.

        And the sizes of the contents that it does not have, by path: those that are too large, and
        those that this worker does not have.
        """
        store = store_of(self.mirror)
        judged: dict[str, LfsObject] = {}
        total = 0
        for path, item in sorted(contents.items(), key=lambda entry: entry[1].size):
            is_short = item.size <= MAX_JUDGED and total + item.size <= ALL_JUDGED
            if is_short and item.path(store).is_file():
                judged[path] = item
                total += item.size
        rest = {path: item.size for path, item in contents.items() if path not in judged}
        if not judged:
            return snapshot, rest
        commit = await commit_with_contents(self.mirror, snapshot.commit, judged)
        return replace(snapshot, commit=commit), rest

    async def ordinary_lfs_files(self, snapshot: Snapshot, pointers: Collection[str]) -> list[str]:
        """Return the files of the work that should be `pointers` by the attributes of the tree."""
        changed = await self.changed_files(snapshot.commit)
        paths = [file.path for file in changed if file.status != "D" and file.path not in pointers]
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        output = await self._run_git("check-attr", "--stdin", "-z", "filter", stdin=names)
        words = output.split(b"\0")
        values = zip(words[::3], words[2::3], strict=False)
        return [os.fsdecode(path) for path, value in values if value == b"lfs"]

    async def _new_contents(self, snapshot: Snapshot) -> list[LfsObject]:
        """Return the objects that the source does not have yet, and that this worker has."""
        if not self.parts.lfs:
            return []
        changed = {*(await self.changed_contents(snapshot)).values()} - self._of_source
        store = store_of(self.mirror)
        return sorted(item for item in changed if item.path(store).is_file())

    async def _unpack(self, bundle: bytes) -> str | None:
        """Store the objects of a bundle; return the commit of the work, if it has any."""
        objects = await unbundle(self.mirror, bundle)
        for name, sha in objects.items():
            await self._set_ref(name, sha)
        if (tree := objects.get("contents")) is not None:
            await store_from_tree(self.mirror, tree)
        return objects.get("work")

    async def _restore_home(self) -> None:
        """Write the files of the bundle, before the agent starts."""
        if (blob := self._objects.get("home")) is not None:
            archive = await git("cat-file", "blob", blob, cwd=self.mirror)
            await asyncio.to_thread(home_files.unpack, archive, self.home)

    async def _set_ref(self, name: str, sha: str) -> None:
        """Let a ref of the run keep an object in the mirror."""
        if self._objects.get(name) != sha:
            await git("update-ref", self.ref(name), sha, cwd=self.mirror)
            self._objects[name] = sha

    async def _clone(self, work: str) -> None:
        """Create the clone, before the agent has access to it."""
        await init(self.path, f"-b{self.branch}", object_format=object_format(self.base_sha))
        config = self.path / ".git" / "config"
        text = CLONE_CONFIG.format_map(COMMITTER)
        if self.parts.lfs and shutil.which("git-lfs"):
            text += AGENT_CONFIG
        config.write_text(config.read_text() + text)
        refs = [f"+{self.ref('base')}:refs/heads/{self.branch}"]
        if work != self.base_sha:
            refs.append(self.ref("work"))
        await git(
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--update-shallow",
            "-u",
            str(self.mirror),
            *refs,
            cwd=self.path,
        )
        await git("read-tree", "--reset", "-u", work, cwd=self.path, env=self._filter())
        if work != self.base_sha:
            await git("reset", "--quiet", "--mixed", cwd=self.path)
        shutil.copy2(self.path / ".git" / "index", self.folder / "index")
        await self._find_converted(work)


async def unbundle(mirror: Path, bundle: bytes) -> dict[str, str]:
    """Store the objects of a bundle in a mirror; return those of its refs, by the last word."""
    with tempfile.TemporaryDirectory(dir=mirror) as folder:
        file = Path(folder, "bundle")
        await asyncio.to_thread(file.write_bytes, bundle)
        heads = (await git("bundle", "unbundle", str(file), cwd=mirror)).decode().split()
    pairs = zip(heads[::2], heads[1::2], strict=True)
    return {ref.rpartition("/")[2]: sha for sha, ref in pairs}


def clone_name(job: int, run: int, tag: str) -> str:
    """Return the name of a run's folder and of its refs."""
    return f"{run_name(job, run)}-{tag}" if tag else run_name(job, run)


def ref_of(clone: str, name: str) -> str:
    """Return the name of a ref of a run in the mirror, which is deleted with its clone."""
    return f"refs/draftsman/{clone}/{name}"


def _fingerprints(root: Path, names: Sequence[bytes]) -> dict[bytes, str | None]:
    """Return the mode and the SHA-256 of regular files, by path; None for others."""
    return {name: _fingerprint(root, Path(os.fsdecode(name))) for name in names}


def _fingerprint(root: Path, path: Path) -> str | None:
    try:
        with open(_open_beneath(root, path), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                return None
            return f"{mode & 0o100:o} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return None


def _is_beyond_link(root: Path, name: bytes) -> bool:
    """Return whether a folder above a path is a link, which git refuses to exclude."""
    folders = PurePosixPath(os.fsdecode(name)).parents
    return any((root / folder).is_symlink() for folder in folders)


def _has_files(folder: Path) -> bool:
    """Return whether the agent has put files into a folder; True if that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _create_folders(folder: Path) -> None:
    remove_tree(folder)
    make_private(folder)
    (folder / "home").mkdir(mode=0o700)


def make_private(folder: Path) -> None:
    """Create a folder and its parent, both with access for this user only."""
    for path in (folder.parent, folder):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.chmod(0o700)
