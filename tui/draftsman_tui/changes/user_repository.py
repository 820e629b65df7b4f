"""The repository of the person who runs a command: git with the person's own configuration."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from draftsman.errors import Refused, UsageError
from draftsman.formats.amounts import counted
from draftsman.ids import job_name
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_tui.common.artifacts import no_diff_reason

OPERATIONS: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}
"""Files of git that exist during an operation, and its name."""


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

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Return git's output; raises Refused with git's reason."""
        done = _run(self.top, *arguments, stdin=stdin)
        if done.returncode:
            raise Refused(f"git {arguments[0]}: {reason_of(done.stderr)}")
        return done.stdout.decode(errors="surrogateescape").strip()

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


def _run(folder: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"LC_ALL": "C"}
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


async def patch_of(rt: Runtime, number: int, ordinal: int | None) -> bytes:
    """Return the patch of a job, or of the run that asked a question; raises Refused."""
    name = job_name(number)
    run = None
    if ordinal is not None:
        question = await rt.questions.get(number, ordinal)
        name = question.name
        run = question.run
    patch = await rt.changes.patch(number, run)
    if patch is None or patch.size == 0:
        raise Refused(await no_diff_reason(rt, name, number, patch is None))
    return await rt.checkpoints.content(patch)


def apply_patch(repository: UserRepository, name: str, patch: bytes) -> str:
    """Merge the changes of a job into a clean working tree; return what happened.

    Raises Refused, also for conflicts, which are left in the files.
    """
    repository.check_clean(f"draftsman apply {name} --dirty")
    done = repository.attempt("apply", "--whitespace=nowarn", "--3way", "-", stdin=patch)
    conflicts = repository.git("diff", "--name-only", "--diff-filter=U").splitlines()
    if conflicts:
        raise Refused(f"{name} applied with conflicts; resolve them: {', '.join(conflicts[:5])}")
    if done.returncode:
        raise Refused(f"{name} does not apply: {reason_of(done.stderr)}")
    if repository.attempt("diff", "--quiet", "HEAD").returncode == 0:
        return f"{repository.top} already has the changes of {name}; nothing changed"
    return f"{repository.top}: {name} applied"


@dataclass(frozen=True, slots=True)
class PublishedWork:
    """The branch of a job, its commit, and the repository where it is."""

    job: str
    branch: str
    commit: str
    source: str


async def published_work(rt: Runtime, number: int) -> PublishedWork:
    """Return the published work of a job; raises Refused."""
    job = await rt.read_model.job(number)
    runs = await rt.read_model.runs(number)
    result: dict[str, Any] = job.result or {}
    sources = [run.params_snapshot["repo"] for run in runs if "repo" in run.params_snapshot]
    branch = result.get("branch")
    commit = result.get("commit")
    if not isinstance(branch, str) or not isinstance(commit, str) or not sources:
        patch = await rt.changes.patch(number)
        if patch is None or patch.size == 0:
            raise Refused(await no_diff_reason(rt, job.name, number, missing=False))
        text = f"{job.name} has no published branch; to use its changes: draftsman apply {job.name}"
        raise Refused(text)
    return PublishedWork(job.name, branch, commit, str(sources[-1]))


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
        raise Refused(f"{text} of {work.job}; to use its changes: draftsman apply {work.job}")
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
        raise Refused(f"{text}; rename it, or use --detach")
    elif repository.attempt("symbolic-ref", "--short", "-q", "HEAD").stdout.decode().strip() == (
        work.branch
    ):
        repository.switch("merge", "--quiet", "--ff-only", commit)
    else:
        repository.git("branch", "--quiet", "--force", work.branch, commit)


def check_out(repository: UserRepository, work: PublishedWork) -> str:
    """Check out the branch in the working tree; return its commit. Raises Refused."""
    place = repository.working_tree_of(work.branch)
    if place is not None and place != repository.top:
        raise Refused(f"{work.branch} is already checked out in {place}")
    repository.check_clean(f"draftsman checkout {work.job} --worktree")
    set_branch(repository, work, fetch(repository, work))
    repository.switch("checkout", "--quiet", work.branch, "--")
    return repository.git("rev-parse", "HEAD")
