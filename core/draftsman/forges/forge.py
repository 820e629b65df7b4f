"""The interfaces of a forge, which adapters implement: the repository, its events and comments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from draftsman.forges.checks import CommitCheck
from draftsman.forges.forge_event import ForgeEvent, Labeling, PullEvents
from draftsman.forges.project import Project
from draftsman.forges.pull_request import (
    Account,
    Comment,
    CommitStatus,
    GitLogin,
    IssueText,
    PullRequest,
    PullRequestText,
    TextLimits,
)


class Discussion(Protocol):
    """The comments of an issue or pull request. Each call raises Failure, as those of Forge."""

    limit: int
    """Maximum characters of a comment."""

    async def issue(self) -> IssueText:
        """Return the text of the issue or pull request."""
        ...

    async def since(self, when: datetime) -> list[Comment]:
        """Return the comments that were written or edited since a time."""
        ...

    async def get(self, id: str) -> Comment:
        """Return a comment."""
        ...

    async def post(self, body: str, leaves: Callable[[], None] = ...) -> Comment:
        """Post a comment; `leaves` is called right before the request is sent."""
        ...

    async def edit(self, id: str, body: str) -> None:
        """Replace the text of a comment."""
        ...

    async def delete(self, id: str) -> None:
        """Delete a comment; one that does not exist is no error."""
        ...


class Forge(Protocol):
    """A repository on a forge. `tests/core/forges/api_contract.py` is its contract.

    Each call raises Failure with origin `forge` or `http`, with the status and `retry_after` of the
    response; MissingSecret without a token on this worker.
    """

    name: str
    """Its table in `[forges]`."""
    project: Project
    limits: TextLimits

    def events(self) -> EventSource:
        """Return the events of the repository, which keeps what it read before."""
        ...

    async def account(self) -> Account:
        """Return the account of the token, and the rights that it lacks here."""
        ...

    async def git_login(self) -> GitLogin:
        """Return user and token for git over HTTP."""
        ...

    async def location(self) -> str:
        """Return owner and name, which differ from `project` after a rename or transfer."""
        ...

    async def default_branch(self) -> str:
        """Return the branch that pull requests are merged into."""
        ...

    async def has_branch(self, name: str) -> bool:
        """Return whether a branch exists."""
        ...

    async def find(self, branch: str) -> list[PullRequest]:
        """Return the pull requests of a branch of this repository, in any state."""
        ...

    async def get(self, number: int) -> PullRequest:
        """Return a pull request."""
        ...

    async def create(self, text: PullRequestText) -> PullRequest:
        """Open a pull request; raises Failure with status 409 or 422 if the branch has another."""
        ...

    async def update(self, number: int, body: str) -> None:
        """Replace the body."""
        ...

    async def set_draft(self, pull: PullRequest, draft: bool) -> None:
        """Convert an open pull request to a draft, or mark it as ready for review."""
        ...

    async def add_labels(self, number: int, labels: Sequence[str]) -> None:
        """Add labels."""
        ...

    async def request_reviews(self, number: int, reviewers: Sequence[str]) -> None:
        """Ask people, by login, for a review."""
        ...

    async def set_status(self, commit: str, status: CommitStatus) -> None:
        """Set the status `draftsman` of a commit."""
        ...

    async def checks(self, commit: str) -> list[CommitCheck]:
        """Return the checks and statuses of a commit."""
        ...

    def discussion(self, number: int, *, is_pull: bool) -> Discussion:
        """Return the comments of an issue; `is_pull`: of a pull request with a number apart."""
        ...

    async def answer(self, number: int, text: str, thread: str | None) -> None:
        """Write a comment on a pull request, in a thread if it is given and the forge can."""
        ...

    async def resolve(self, number: int, thread: str) -> None:
        """Resolve a thread, where the forge can."""
        ...

    async def delete_branch(self, name: str) -> None:
        """Delete a branch; a branch that does not exist is no error."""
        ...

    async def merge(self, number: int, commit: str, method: str, message: str = "") -> None:
        """Merge if `commit` is the head; raises Failure if the rules of the forge refuse it.

        `message` is that of the commit of the method `squash`; empty: as the forge writes it.
        """
        ...


class EventSource(Protocol):
    """Events of a repository on a forge. `tests/core/forges/test_events.py` is its contract.

    Each call raises Failure, as those of `Forge`.
    """

    async def pull(self, number: int) -> PullEvents:
        """Return the events of a pull request: all comments, and those about its state now."""
        ...

    async def written(self, number: int) -> list[ForgeEvent]:
        """Return the comments and reviews of a pull request, whatever its state."""
        ...

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        """Return the events of the open issues with a label, each with its labeler."""
        ...

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        """Return when and by whom an issue was given a label, in order; none without a trace."""
        ...

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        """Return the comments on issues since a time, or on some forges all with `numbers`."""
        ...

    async def has_webhook(self, url: str) -> bool | None:
        """Return whether a webhook to this URL is active; None if the token cannot tell."""
        ...
