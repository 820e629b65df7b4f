"""Jobs in lists and chains, and the filters of lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from draftsman.formats.amounts import counted
from draftsman.formats.json_data import HIDDEN, OPTIONAL
from draftsman.ids import account_name, job_name
from draftsman.jobs.job import FAILURES, LEASED, RequestSummary, Status
from draftsman.jobs.retries import ErrorClass
from draftsman.text import STORED_SENTENCE


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Cost and changes of a job in a list. None: unknown."""

    number: int
    cost_usd: float | None
    added: int | None = field(metadata=OPTIONAL)
    """Lines that the newest patch adds."""
    removed: int | None = field(metadata=OPTIONAL)
    progress: str = ""
    """The plan and the newest line of an active run."""
    asks: str = ""
    """The action in words of an open approval, or the open question."""
    asks_until: datetime | None = None
    """When the first of its open questions expires; None: never."""


@dataclass(frozen=True, slots=True)
class Dismissal:
    """Who took a failure out of attention, when and why."""

    dismissed_by: str
    dismissed_at: datetime
    reason: str | None

    def __str__(self) -> str:
        return dismissal_text(self.dismissed_by, self.reason)

    @classmethod
    def of(cls, by: str | None, at: datetime | None, reason: str | None) -> Dismissal | None:
        """Return the dismissal of a row, None if it has none."""
        return None if by is None or at is None else cls(by, at, reason)


def dismissal_text(by: str, reason: str | None) -> str:
    """Return who dismissed a failure, and why: `by anna: fixed upstream`."""
    return f"by {account_name(by)}" + (f": {reason}" if reason else "")


@dataclass(frozen=True, slots=True)
class HeldDecision:
    """An answer, decision or cancel that can still be undone."""

    verb: str
    """`answered`, `decided` or `canceled`."""
    by: str
    applies_at: datetime

    @property
    def lead(self) -> str:
        """Who decided, up to the time from which it counts: `answered by anna, counts `."""
        return f"{self.verb} by {self.by}, counts "


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in a list."""

    number: int
    id: UUID
    type: str
    queue: str
    status: Status
    source: str
    title: str
    """Its title; the type of a job without a title."""
    invoker_id: str
    tags: list[str]
    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int
    run_count: int
    next_retry_at: datetime | None
    run_at: datetime | None
    last_error: str | None = field(metadata=STORED_SENTENCE)
    error_class: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    template: str | None
    template_version: int | None
    due_in: float | None = field(compare=False)
    """Seconds until its scheduled time, by the database's clock; None: not scheduled."""
    request: RequestSummary | None = field(default=None, metadata=OPTIONAL)
    """What an agent is asked to do, in short; None for other jobs."""
    pr_url: str | None = field(default=None, metadata=OPTIONAL)
    """URL of its pull request."""
    hold: str | None = None
    """Why a job cannot be claimed: `paused`, `reserved`, `parents`, `children` (that it gathers),
    `key` (in use), `limit` (no free place) or `trial` (of jobs that were lost together); with
    figures also `no_worker` or `unknown_type`: no running worker has its queue, or its type."""
    held_by: str | None = None
    """The limit in which it waits for a place, such as `repo:shop`."""
    parents: Sequence[tuple[int, str]] | None = field(default=None, metadata=HIDDEN)
    """The first four parents that have not ended, and their statuses, if it waits for them."""
    job_paused: bool = False
    """Whether the job itself is paused, in any state but a final one; else only its queue."""
    pause_reason: str | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None
    retried_as: int | None = None
    """The job that retries it, if it failed or is a dead letter."""
    failure_open: bool = False
    """Whether it failed and needs a person: it was neither denied, nor retried, nor dismissed."""
    dismissed_by: str | None = None
    """Who took the failure out of attention, if a person did."""
    dismissed_at: datetime | None = None
    dismissal_reason: str | None = None
    sleep_reason: str | None = None
    """The reason that its handler gave for a sleep."""
    decision: HeldDecision | None = field(default=None, metadata=HIDDEN)
    """The answer, decision or cancel in its undo window, if figures were read."""
    figures: JobFigures | None = None
    """Its cost, changes and progress, if they were read."""

    @property
    def dismissal(self) -> Dismissal | None:
        """The dismissal of its failure."""
        return Dismissal.of(self.dismissed_by, self.dismissed_at, self.dismissal_reason)

    @property
    def is_denied(self) -> bool:
        """Whether it failed because a person denied its question."""
        return self.error_class == ErrorClass.DENIED

    @property
    def closed_text(self) -> str:
        """What a person did about its failure: `retried as D-9`, or `dismissed by anna`."""
        if self.retried_as is not None:
            return f"retried as {job_name(self.retried_as)}"
        return "" if self.dismissal is None else f"dismissed {self.dismissal}"

    @property
    def shown_as_paused(self) -> bool:
        """Whether lists show it as paused: a run that was not parked yet is shown as running."""
        return self.job_paused and self.status not in LEASED


@dataclass(frozen=True, slots=True)
class JobVersion:
    """The status of a job, its version, which grows with each update, and whether it is paused."""

    status: Status
    version: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """The unique key of a job, the job that it replaced, and the job that replaced it."""

    key: str | None
    replaces: int | None
    replaced_by: int | None


class JobFilters(TypedDict, total=False):
    """Filters of a page; a job matches all of them."""

    statuses: Sequence[Status] | None
    agent: str | None
    repo: str | None
    """Name, owner/name or host/owner/name, in any case."""
    type: str | None
    queue: str | None
    source: str | None
    tags: Sequence[str]
    """The job has all of them; `team` also matches the tag `team=pay`."""
    invoker: str | None
    """As `Actor.voter`."""
    key: str | None
    """The idempotency key, which jobs of several types may have."""
    group: str | None
    numbers: Sequence[int] | None
    paused: bool
    """Only jobs that are paused themselves."""
    failures: bool
    """Only open failures: those that need a person."""
    since: datetime | None
    until: datetime | None
    """Created before this time."""
    before: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first, or those that wait for people by their deadlines."""

    jobs: list[JobSummary]
    scanned_to: int | None = None
    """Job number where the scan stopped before the page was full.

    Pass it as `before` to continue. None: there are no more jobs, or the page is full and ends with
    its last job.
    """


@dataclass(frozen=True, slots=True)
class RetryLink:
    """A job of a retry chain."""

    number: int
    status: Status
    retry_of: int | None
    chain_length: int
    last_error: str | None = field(metadata=STORED_SENTENCE)
    error_class: str | None = None

    @property
    def name(self) -> str:
        """The display name, such as `D-142`."""
        return job_name(self.number)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A finished job; `matches` says whether the filters match."""

    number: int
    status: Status
    type: str
    agent: str | None = field(metadata=OPTIONAL)
    title: str
    last_error: str | None = field(metadata=STORED_SENTENCE)
    finished_at: datetime
    matches: bool
    followed_by: int | None
    """Its retry, None without a retry."""
    dismissed: bool
    failure_open: bool
    """As of `JobSummary`."""

    @property
    def settled(self) -> str:
        """Why it needs nothing more: `already retried`, `dismissed` or `denied`; "" if it may.

        Bulk commands leave it out, so that a decision of a person is changed by name alone.
        """
        if self.followed_by is not None:
            return "already retried"
        if self.dismissed:
            return "dismissed"
        return "denied" if self.status in FAILURES and not self.failure_open else ""


def settled_lines(jobs: Iterable[FinishedJob]) -> list[str]:
    """Return how many of the jobs need nothing more, a line for each reason."""
    counts = Counter(job.settled for job in jobs if job.settled)
    return [
        f"{counted(count, 'matching job was', 'matching jobs were')} {reason}"
        for reason, count in counts.items()
    ]
