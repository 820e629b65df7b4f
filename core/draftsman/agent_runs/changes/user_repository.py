"""The repository of the person who runs a command: git with the person's own configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from draftsman.errors import CommandHint, OptionHint, Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.repos.repo_url import parse

OPERATIONS: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}
"""Files of git that exist during an operation, and its name."""
_NONE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class UserRepository:
    """A repository with a working tree; `top` is its top folder."""

    top: Path

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Return the repository that contains a folder; raises UsageError."""
        done = _run(folder, "rev-parse", "--show-toplevel")
        top = done.stdout.decode(errors="surrogateescape").rstrip("\n")
        if done.returncode or not top:
            raise UsageError(
                f"{folder}: not in a working tree of git; use -C DIRECTORY, or go to one"
            )
        return cls(Path(top))

    def git(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] = _NONE) -> str:
        """Return git's output; raises Refused with git's reason."""
        output = self.output(*arguments, stdin=stdin, env=env)
        return output.decode(errors="surrogateescape").strip()

    def output(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] = _NONE) -> bytes:
        """Return git's output as it is; raises Refused with git's reason."""
        done = _run(self.top, *arguments, stdin=stdin, env=env)
        if done.returncode:
            raise Refused(f"git {arguments[0]}: {reason_of(done.stderr)}")
        return done.stdout

    def attempt(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git, and return its result, whatever its exit code is."""
        return _run(self.top, *arguments, stdin=stdin)

    def switch(self, *arguments: str) -> None:
        """Run git to write other files of the repository; raises Refused with git's reason.

        Hooks that are files of the repository do not run: the branch could have its own.
        """
        configured = _run(self.top, "config", "--path", "--get", "core.hooksPath").stdout
        hooks = (self.top / os.fsdecode(configured).rstrip("\n")).resolve()
        top = self.top.resolve()
        in_tree = hooks.is_relative_to(top) and not hooks.is_relative_to(top / ".git")
        flags = ("-c", f"core.hooksPath={os.devnull}") if configured and in_tree else ()
        done = _run(self.top, *flags, *arguments)
        if done.returncode:
            raise Refused(f"git {arguments[0]}: {reason_of(done.stderr)}")

    def commit_of(self, name: str) -> str | None:
        """Return the commit of a ref or an id; None if the repository does not have it."""
        done = _run(self.top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return done.stdout.decode().strip() or None

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether a commit is another, or before it."""
        return _run(self.top, "merge-base", "--is-ancestor", older, newer).returncode == 0

    def working_tree_of(self, branch: str) -> Path | None:
        """Return the top folder of the working tree that has a branch checked out."""
        top = None
        for line in self.git("worktree", "list", "--porcelain").splitlines():
            if line.startswith("worktree "):
                top = Path(line.removeprefix("worktree "))
            elif line == f"branch refs/heads/{branch}":
                return top
        return None

    def check_clean(self, hint: str) -> None:
        """Raise Refused with local changes of tracked files, or during an operation of git."""
        for name, operation in OPERATIONS.items():
            if (self.top / self.git("rev-parse", "--git-path", name)).exists():
                raise Refused(f"{self.top}: a {operation} is in progress; finish it first")
        status = self.git("status", "--porcelain", "--untracked-files=no")
        if status:
            count = len(status.splitlines())
            files = counted(count, "changed file")
            raise Refused(f"{self.top} has {files}; commit or stash them, or use {hint}")

    def source_of(self, source: str) -> str | None:
        """Return where to fetch from: a remote with this URL, else the URL; None: this repository.

        A remote of the person may have other credentials than the URL.
        """
        if Path(source).is_dir():
            same = Path(self.git("rev-parse", "--git-common-dir"))
            mine = (self.top / same).resolve()
            if mine in (Path(source).resolve(), (Path(source) / ".git").resolve()):
                return None
        location = _normalized(source)
        for remote in self.git("remote").splitlines():
            url = _run(self.top, "remote", "get-url", remote).stdout.decode(errors="replace")
            if _normalized(url.strip()) == location:
                return remote
        return source


def reason_of(errors: bytes) -> str:
    """Return the line of git's errors that gives the reason."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith(("fatal:", "error:"))]
    line = (reasons or lines or ["no reason given"])[0]
    return line.removeprefix("fatal: ").removeprefix("error: ")


def _normalized(url: str) -> str:
    try:
        return parse(url).url
    except UsageError:
        return url


def _run(
    folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] = _NONE
) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"LC_ALL": "C", **env}
    try:
        return subprocess.run(
            ["git", "-c", "advice.detachedHead=false", *arguments],
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder") from None
        raise Refused("git not found; install git 2.32 or later") from None


# The branch of a job, brought into the repository of a person.


@dataclass(frozen=True, slots=True)
class PublishedWork:
    """The branch of a job, its commit, and the repository where it is."""

    job: str
    branch: str
    commit: str
    source: str


def fetch(repository: UserRepository, work: PublishedWork) -> str:
    """Return the newest commit of the branch, which has that of the job."""
    source = repository.source_of(work.source)
    if source is None:
        commit = repository.commit_of(f"refs/heads/{work.branch}") or work.commit
    else:
        ref = f"refs/heads/{work.branch}"
        done = repository.attempt("fetch", "--quiet", "--no-tags", "--", source, ref)
        if done.returncode:
            raise Refused(f"cannot fetch {work.branch} of {source}: {reason_of(done.stderr)}")
        commit = repository.git("rev-parse", "FETCH_HEAD")
    if repository.commit_of(work.commit) is None or not repository.is_ancestor(work.commit, commit):
        text = f"{work.branch} of {work.source} does not have the commit {work.commit[:12]}"
        hint = CommandHint("apply", work.job, lead="to use its changes")
        raise Refused(f"{text} of {work.job}", hint=hint)
    if source is not None and repository.attempt("merge-base", "HEAD", commit).returncode == 1:
        text = f"{repository.top} has no commit in common with {work.source}"
        raise Refused(f"{text}; use a clone of that repository")
    return commit


def set_branch(repository: UserRepository, work: PublishedWork, commit: str) -> None:
    """Create the person's branch, or move it forward; raises Refused if it has other commits."""
    existing = repository.commit_of(f"refs/heads/{work.branch}")
    if existing is None:
        repository.git("branch", "--no-track", work.branch, commit)
    elif repository.is_ancestor(commit, existing):
        return  # with commits of the person on top
    elif not repository.is_ancestor(existing, commit):
        text = f"your branch {work.branch} has other commits ({existing[:12]})"
        raise Refused(text, hint=OptionHint("detach", lead="rename it, or use"))
    elif repository.attempt("symbolic-ref", "--short", "-q", "HEAD").stdout.decode().strip() == (
        work.branch
    ):
        repository.switch("merge", "--quiet", "--ff-only", commit)
    else:
        repository.git("branch", "--quiet", "--force", work.branch, commit)


def existing_tree(
    repository: UserRepository, branch: str, path: Path | None, *, worktree: bool
) -> UserRepository | None:
    """Return the other working tree of an earlier checkout; raises Refused if it is in the way.

    git checks out a branch in a single working tree.
    """
    folder = repository.working_tree_of(branch)
    if folder is None or (folder == repository.top and not worktree):
        return None
    if worktree and folder != repository.top and path in (None, folder):
        return UserRepository(folder)
    text = f"{branch} is already checked out in {folder}"
    raise Refused(text, hint=OptionHint("detach", lead="go there, or use"))


def check_out(
    repository: UserRepository,
    work: PublishedWork,
    *,
    detach: bool = False,
    worktree: bool = False,
    path: Path | None = None,
) -> Path:
    """Check out the branch, or its commit with `detach`; return the working tree.

    `worktree`: in a new one, at `path`. Raises Refused.
    """
    existing = None if detach else existing_tree(repository, work.branch, path, worktree=worktree)
    if existing is not None:
        repository = existing
    if existing is not None or not worktree:
        repository.check_clean("--detach" if worktree else "--worktree")
    commit = fetch(repository, work)
    target = commit if detach else work.branch
    flag = ("--detach",) if detach else ()
    if not detach:
        set_branch(repository, work, commit)
    if existing is not None:
        return existing.top
    if worktree:
        place = (path or repository.top.with_name(f"{repository.top.name}-{work.job}")).absolute()
        repository.switch("worktree", "add", "--quiet", *flag, str(place), target)
        return place
    repository.switch("checkout", "--quiet", *flag, target, "--")
    return repository.top


# The patch of a job, applied to the working tree of a person.


@dataclass(frozen=True, slots=True)
class AppliedPatch:
    """The conflicts that are left in files, and whether anything was written."""

    conflicts: Sequence[str]
    unchanged: bool


def apply_patch(
    repository: UserRepository,
    name: str,
    patch: bytes,
    *,
    check: bool = False,
    reverse: bool = False,
    dirty: bool = False,
) -> AppliedPatch:
    """Merge the changes of a job into a working tree; `check` only tests whether they apply.

    `reverse` takes them back, and `dirty` applies them despite local changes, without merging.
    Raises Refused.
    """
    flags = ["--whitespace=nowarn", *(["--reverse"] if reverse else [])]
    merge = False
    if check:
        flags.append("--check")
    elif reverse and _is_staged(repository, patch):
        flags.append("--index")
    elif not dirty:
        repository.check_clean("--dirty")
        merge = True
        flags.append("--3way")
    done = repository.attempt("apply", *flags, "-", stdin=patch)
    conflicts = repository.git("diff", "--name-only", "--diff-filter=U").splitlines()
    if done.returncode and not (conflicts and not dirty):
        raise Refused(f"{name} does not apply: {reason_of(done.stderr)}")
    unchanged = merge and repository.attempt("diff", "--quiet", "HEAD").returncode == 0
    return AppliedPatch(conflicts, unchanged)


def _is_staged(repository: UserRepository, patch: bytes) -> bool:
    """Return whether the index and the working tree both have the changes, as `apply` leaves them.

    They are taken back from both, else the next commit would have them.
    """
    return not repository.attempt(
        "apply", "--check", "--reverse", "--index", "-", stdin=patch
    ).returncode
