"""State of a fake forge: repositories of real git, pull requests, statuses and faults."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from draftsman_testing.fake.faults import ANY, Fault, Faults
from draftsman_testing.fake.server import ServerState
from draftsman_testing.forges.conversation import AT, Conversation
from draftsman_testing.forges.lfs_server import LfsServer

MENTION: Final = re.compile(r"(?<![\w`])@([A-Za-z0-9][A-Za-z0-9-]*)")
CLOSES: Final = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(#\d+|\w+/\w+#\d+|https?://\S+/issues/\d+)",
    re.IGNORECASE,
)
"""Keywords by which a forge closes an issue at the merge."""


def at_second(number: int) -> str:
    """Return the time of a label."""
    return f"2026-01-02T03:04:{number:02}Z"


@dataclass
class Pull:
    """A pull request."""

    number: int
    branch: str
    base: str
    title: str
    body: str
    draft: bool
    author: str
    state: str = "open"
    """`open`, `closed` or `merged`."""
    merged_head: str = ""
    message: str = ""
    """The message that the merge was told for its commit."""
    closed_at: str = AT
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)


@dataclass
class Note:
    """A comment of an issue or pull request."""

    id: int
    place: str
    """`#1`, or `!1` of a merge request of GitLab."""
    body: str
    author: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the API."""

    operation: str
    method: str
    path: str
    status: int


class ForgeFaults(Faults[str]):
    """Faults of operations: `create`, `find`, `status` and others."""

    def __init__(self) -> None:
        super().__init__()
        self._by_name: dict[str, deque[Fault]] = {}

    def add(self, operation: str, *faults: Fault) -> None:
        """Let the next calls of an operation have these faults."""
        self._by_name.setdefault(operation, deque()).extend(faults)

    def _queue(self, call: str) -> deque[Fault] | None:
        return self._by_name.get(call) or self._by_name.get(ANY)


@dataclass
class ForgeWorld(ServerState[Call]):
    """One repository, `acme/pay`, and the accounts with access to it."""

    folder: Path = Path()
    """Folder with the bare repositories."""
    project: str = "acme/pay"
    id: int = 1296269
    """The id of the repository, which a rename does not change."""
    former: list[str] = field(default_factory=list)
    """Names that the repository had before, in lower case."""
    blocked: dict[str, Fault] = field(default_factory=dict)
    """Faults of all calls about other repositories, by name in lower case."""
    token: str = "forge-token-of-the-bot"
    login: str = "draftsman-bot"
    people: dict[str, int] = field(default_factory=lambda: {"anna": 7, "ben": 8})
    renamed: dict[str, int] = field(default_factory=dict)
    """Ids of accounts that took the login of another."""
    labels: dict[str, int] = field(default_factory=lambda: {"draftsman": 3, "backend": 4})
    pulls: list[Pull] = field(default_factory=list)
    issues: set[str] = field(default_factory=lambda: {"#7"})
    """Issues, besides the pull requests."""
    notes: list[Note] = field(default_factory=list)
    labelers: list[tuple[str, str]] = field(default_factory=list)
    """Labels of issues and the login that gave each, a second apart; without, it was removed."""
    issue: tuple[str, str] = ("Refunds", "They are rounded twice, see @ben")
    """Title and text of the issue."""
    refused: str | None = None
    """Text of comments that are refused as spam."""
    statuses: list[dict[str, str]] = field(default_factory=list)
    checks: list[dict[str, str]] = field(default_factory=list)
    """Results of a CI: name, state and commit, `*` for each."""
    protection: str | None = None
    """Why the rules of the branch refuse a merge."""
    has_drafts: bool = True
    may_push: bool = True
    scopes: str | None = None
    page: int = 100
    """Maximum number of entries of a page."""
    git_logins: list[str] = field(default_factory=list)
    """User and token of each request of git; empty without."""
    executed: list[str] = field(default_factory=list)
    """Commands of descriptions that the forge executed."""
    talk: Conversation = field(default_factory=Conversation)
    lfs: LfsServer = field(default_factory=LfsServer)
    faults: ForgeFaults = field(default_factory=ForgeFaults)

    def account_id(self, login: str) -> int:
        """Return the id of the account with this login."""
        return self.renamed.get(login) or self.people.get(login) or crc32(login.encode()) + 100

    def rename(self, project: str) -> None:
        """Rename or transfer the repository; the old name leads to the new one."""
        old = self.repository
        self.former.append(self.project)
        self.project = project
        self.repository.parent.mkdir(parents=True, exist_ok=True)
        old.rename(self.repository)

    @property
    def repository(self) -> Path:
        """The bare repository."""
        return self.folder / f"{self.project}.git"

    def head(self, branch: str) -> str | None:
        """Return the commit of a branch."""
        ref = f"refs/heads/{branch}"
        if (path := self.repository / ref).is_file():
            return path.read_text().strip()
        packed = self.repository / "packed-refs"
        rows = packed.read_text().splitlines() if packed.exists() else []
        return next((row[:40] for row in rows if row[41:] == ref), None)

    def has_commit(self, commit: str) -> bool:
        """Return whether the repository has a commit."""
        return (self.repository / "objects" / commit[:2] / commit[2:]).exists()

    def merge(self, pull: Pull) -> None:
        """Merge a pull request, by moving the branch."""
        head = self.head(pull.branch)
        assert head is not None
        self.push(pull.base, head)
        pull.state = "merged"
        pull.merged_head = head

    def push(self, branch: str, commit: str) -> None:
        """Set a branch to a commit of the repository, without a process of git."""
        path = self.repository / "refs" / "heads" / branch
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{commit}\n")

    def delete(self, branch: str) -> bool:
        """Delete a branch; return whether it existed."""
        if self.head(branch) is None:
            return False
        git = ("git", "update-ref", "-d", f"refs/heads/{branch}")
        return subprocess.run(git, cwd=self.repository, check=False).returncode == 0

    def open(self, branch: str, base: str, title: str, body: str, draft: bool, by: str) -> Pull:
        """Open a pull request."""
        pull = Pull(len(self.pulls) + 1, branch, base, title, body, draft, by)
        self.pulls.append(pull)
        return pull

    def open_of(self, branch: str) -> Pull | None:
        """Return the open pull request of a branch."""
        found = (pull for pull in self.pulls if pull.branch == branch and pull.state == "open")
        return next(found, None)

    def has(self, place: str) -> bool:
        """Return whether there is an issue or pull request."""
        return place in self.issues or any(place[1:] == str(pull.number) for pull in self.pulls)

    def refuses(self, body: str) -> bool:
        """Return whether a comment is refused."""
        return not body.strip() or bool(self.refused and self.refused in body)

    def comment(self, place: str, body: str, by: str | None = None) -> Note:
        """Write a comment."""
        at = datetime.fromtimestamp(self.now(), UTC)
        note = Note(next(self._ids) + 1000, place, body, by or self.login, at)
        self.notes.append(note)
        return note

    def comments(self, place: str = "#7") -> list[Note]:
        """Return the comments of an issue or pull request."""
        return [note for note in self.notes if note.place == place]

    def pull(self, number: int) -> Pull | None:
        """Return a pull request."""
        return next((pull for pull in self.pulls if pull.number == number), None)

    def mentioned(self) -> set[str]:
        """Return the people that the bodies of all pull requests mention."""
        return {name for pull in self.pulls for name in MENTION.findall(pull.body)}

    def closing(self) -> list[str]:
        """Return the issues that the merge of a pull request closes."""
        return [issue for pull in self.pulls for issue in CLOSES.findall(pull.body)]

    def latest(self, commit: str) -> list[dict[str, Any]]:
        """Return the latest status of each context of a commit."""
        found = {item["name"]: item for item in self.statuses if item["commit"] == commit}
        return list(found.values())
