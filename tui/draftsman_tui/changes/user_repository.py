"""The repository of the person who runs a command: git with the person's own configuration."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from draftsman.errors import Refused, UsageError
from draftsman.repos.repo_url import parse

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
            files = f"{count} changed file{'' if count == 1 else 's'}"
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
