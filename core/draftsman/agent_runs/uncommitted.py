"""Uncommitted changes of the working tree of the person who submits a job."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from draftsman.agent_runs.changes.user_repository import UserRepository
from draftsman.agent_runs.clones.git import config_variables
from draftsman.agent_runs.policies.repo_policy import SECRETS, SIZES, RepoPolicy, finding_lines
from draftsman.errors import DraftsmanError, Refused, UsageError
from draftsman.jobs.requests.uncommitted_changes import MAX_PATCH, UncommittedChanges, too_large
from draftsman.settings.policies import PolicySettings

MAX_SIZE = 4 * MAX_PATCH
"""Maximum bytes of the changed and new files together."""


def uncommitted_files(folder: str) -> list[str]:
    """Return the changed and new files of a working tree; none of another folder or a URL."""
    if not folder.startswith("/") or not Path(folder).is_dir():
        return []
    try:
        repository = UserRepository.at(Path(folder))
        status = repository.output("status", "--porcelain", "-z", "--untracked-files=all")
    except DraftsmanError:  # a bare repository, or none
        return []
    entries = iter(os.fsdecode(status).split("\0"))
    files = []
    for entry in filter(None, entries):
        files.append(entry[3:])
        if entry[0] in "RC":
            next(entries)  # the former name
    return files


def take_changes(folder: str, policy: PolicySettings) -> UncommittedChanges | None:
    """Return the uncommitted changes of a working tree as a patch; None without any.

    New files that git ignores are left out. Raises UsageError for a folder without a working tree
    or commit, and Refused for changes with secrets.
    """
    repository = UserRepository.at(Path(folder))
    base = repository.commit_of("HEAD")
    if base is None:
        raise UsageError(f"{folder} has no commit; create a first one")
    size = sum(_size(repository.top / name) for name in uncommitted_files(folder))
    if size > MAX_SIZE:
        raise too_large(size)
    with tempfile.TemporaryDirectory() as place:
        objects = repository.top / repository.git("rev-parse", "--git-path", "objects")
        env = {
            "GIT_INDEX_FILE": str(Path(place, "index")),
            "GIT_OBJECT_DIRECTORY": place,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(objects.resolve()),
        }
        index = repository.top / repository.git("rev-parse", "--git-path", "index")
        if index.is_file():  # a new one would take files along that nobody has touched
            shutil.copy2(index, env["GIT_INDEX_FILE"])
        else:
            repository.git("read-tree", base, env=env)
        repository.git("add", "--all", env=env | config_variables({"core.splitIndex": "false"}))
        options = ("--cached", "--no-renames", "--no-ext-diff", "--ignore-submodules=all")
        form = ("--binary", "--full-index", "--no-textconv", "--no-color")
        patch = repository.output("diff", *options, *form, base, env=env)
        names = repository.output("diff", *options, "--name-only", "-z", base, env=env)
    if not patch:
        return None
    check_changes(patch, RepoPolicy(policy))
    return UncommittedChanges(base, patch, names.count(b"\0"))


def check_changes(patch: bytes, policy: RepoPolicy) -> None:
    """Raise Refused for changes that the policy denies, and for secrets that it does not allow."""
    findings = [
        item
        for item in policy.decide(os.fsdecode(patch))
        if item.rule in SECRETS or (item.effect == "deny" and item.rule not in SIZES)
    ]
    if findings:
        lines = "; ".join(finding_lines(findings).splitlines())
        raise ChangesRefused(
            f"the uncommitted changes have {lines}; remove them, or let git ignore them",
            findings[0].rule,
        )


class ChangesRefused(Refused):
    """Uncommitted changes that a rule of the policy refuses."""

    def __init__(self, message: str, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # deleted
        return 0


def _quoted(path: Path) -> str:
    """Return a path for a list of git, in which a colon would end it."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
