"""Pull requests of a forge, and the decision to create, update or keep it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from draftsman.forges.checks import CheckState
from draftsman.jobs.reserved_names import PULL_REQUEST, Owner
from draftsman.jobs.runs.saved_data import Step as RecordedStep

MARKER: Final = re.compile(
    r"<!-- draftsman job=(?P<job>D-\d+) id=(?P<id>[0-9a-f-]{36}) head=(?P<head>[0-9a-f]{40,64}) -->"
)
"""The last line of a body that draftsman wrote."""
DRAFT_LINE: Final = "<!-- draftsman draft -->"
"""The line before it, if draftsman made the pull request a draft."""


class PullState(StrEnum):
    """State of a pull request."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


UNSETTLED: Final = "conflict, or not yet checked for conflicts"
"""Merge state of a forge whose API does not tell these apart."""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as its forge reports it."""

    number: int
    url: str
    state: PullState
    head: str
    """Commit of its branch."""
    base: str
    """Branch that it is merged into."""
    draft: bool
    title: str
    body: str
    mergeable: CheckState = CheckState.PASSED
    """Whether conflicts and the rules of the branch allow a merge; a list does not tell."""
    merge_state: str = ""
    """The word of the forge for it: `blocked`, `not_approved`, …"""


@dataclass(frozen=True, slots=True)
class PullRequestText:
    """A pull request to open: `body` ends with the marker."""

    branch: str
    base: str
    title: str
    body: str
    draft: bool
    """Whether required validation fails."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of an issue or pull request; `id` is its reference for later updates."""

    id: str
    body: str


@dataclass(frozen=True, slots=True)
class IssueText:
    """The text of an issue or pull request."""

    title: str
    body: str
    url: str


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Maximum lengths of a forge, in characters."""

    title: int
    body: int
    status: int


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """The status `draftsman` of a commit."""

    passed: bool
    description: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a token, and the rights on a repository that it lacks."""

    name: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GitLogin:
    """User and token for git over HTTP."""

    user: str
    token: str

    def __repr__(self) -> str:
        return f"GitLogin(user={self.user!r}, token='***')"


class Reconciliation(StrEnum):
    """The step that brings the forge in line with a published branch."""

    CREATE = "create"
    UPDATE = "update"
    """It is of an earlier commit of the job."""
    KEEP = "keep"
    ADOPT = "adopt"
    """Another author opened it: its text stays."""


def marker(job: str, id: UUID, head: str) -> str:
    """Return the line by which a pull request of a job is found; `id` differs between databases."""
    return f"<!-- draftsman job={job} id={id} head={head} -->"


def next_step(
    pulls: Sequence[PullRequest], id: UUID, head: str
) -> tuple[Reconciliation, PullRequest | None]:
    """Return the next step, and the pull request of the branch that it is about.

    A job has a single pull request: if a person closed or merged it, it is not opened again.
    """
    by_state = sorted(pulls, key=lambda pull: (pull.state is not PullState.OPEN, -pull.number))
    for pull in by_state:
        fields = _marker_of(pull.body)
        if fields is not None and fields["id"] == str(id):
            same = fields["head"] == head or pull.state is not PullState.OPEN
            return (Reconciliation.KEEP if same else Reconciliation.UPDATE), pull
    for pull in by_state:
        if pull.state is PullState.OPEN:
            return Reconciliation.ADOPT, pull
    return Reconciliation.CREATE, None


def draft_change(pull: PullRequest, draft: bool) -> bool | None:
    """Return whether an own, open pull request becomes a draft or ready; None to keep its state.

    Work that is not green is a draft. A draft of a person stays one, whatever the work is.
    """
    if pull.state is not PullState.OPEN or pull.draft == draft:
        return None
    return draft if draft or DRAFT_LINE in pull.body.splitlines() else None


def recorded(steps: Sequence[RecordedStep]) -> Mapping[str, Any] | None:
    """Return the record of a job about its pull request: `number` and `url`, or its `problem`."""
    for step in steps:
        if (step.key, step.owner, step.status) == (PULL_REQUEST, Owner.WORKER, "done"):
            result: Mapping[str, Any] = step.result
            return result
    return None


def _marker_of(body: str) -> re.Match[str] | None:
    """Return the marker in the last line: texts of people and agents stand before it."""
    lines = body.rstrip().splitlines()
    return MARKER.fullmatch(lines[-1].strip()) if lines else None
