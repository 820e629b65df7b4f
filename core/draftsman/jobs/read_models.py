"""Read models: the immutable values that services return to front ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from draftsman.deliveries.delivery import ChannelName
from draftsman.ids import job_name
from draftsman.jobs.job import LEASED, Mode, Source, Status
from draftsman.jobs.reserved_names import Owner
from draftsman.text import STORED_SENTENCE

if TYPE_CHECKING:
    from draftsman.repos.repo_profile import RepoProfile


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Cost and changes of a job in a list. None: unknown."""

    number: int
    cost_usd: float | None
    added: int | None
    """Lines that the newest patch adds."""
    removed: int | None
    progress: str = ""
    """The plan and the newest line of an active run."""
    asks: str = ""
    """The action in words of an open approval, or the open question."""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in a list."""

    number: int
    id: UUID
    type: str
    queue: str
    status: Status
    mode: Mode
    source: str
    agent: str | None
    repo_host: str | None
    repo_owner: str | None
    repo_name: str | None
    ticket_title: str | None
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
    pr_url: str | None = None
    hold: str | None = None
    """Why a job cannot be claimed: `paused`, `reserved`, `parents`, `children` (that it gathers),
    `key` (in use), `limit` (no free place) or `trial` (of jobs that were lost together)."""
    held_by: str | None = None
    """The limit in which it waits for a place, such as `repo:shop`."""
    job_paused: bool = False
    """Whether the job itself is paused, in any state but a final one; else only its queue."""
    pause_reason: str | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None
    retried_as: int | None = None
    """The job that retries it, if it failed or is a dead letter."""
    sleep_reason: str | None = None
    """The reason that its handler gave for a sleep."""
    figures: JobFigures | None = None
    """Its cost, changes and progress, if they were read."""

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
    since: datetime | None
    before: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first."""

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
    agent: str | None
    ticket_title: str | None
    last_error: str | None = field(metadata=STORED_SENTENCE)
    finished_at: datetime
    matches: bool
    followed_by: int | None
    """Its retry, None without a retry."""


@dataclass(frozen=True, slots=True)
class RecentDuplicate:
    """A job with the same text, submitted `age` seconds before."""

    number: int
    status: Status
    age: float


@dataclass(frozen=True, slots=True)
class Step:
    """A row of `job_steps`."""

    key: str
    status: str
    invocation_id: str
    result: Any
    owner: str = Owner.HANDLER


@dataclass(frozen=True, slots=True)
class Artifact:
    """A row of `artifacts`; `size` in bytes."""

    id: int
    job: int
    run: int
    name: str
    kind: str
    size: int
    sha256: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A row of `job_targets`."""

    job: int
    ordinal: int
    channel: ChannelName
    target: str
    thread: str | None
    kinds: list[str]
    outcomes: list[str] | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ActivityBucket:
    """The activity of some seconds; `at` is the bucket's number since the epoch."""

    at: int
    finished: int
    """Jobs that finished."""
    answers: list[float]
    """Seconds until the answer, for each answered question."""

    def __add__(self, other: ActivityBucket | None) -> ActivityBucket:
        if other is None:
            return self
        return ActivityBucket(self.at, self.finished + other.finished, self.answers + other.answers)


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """The server's settings; `clock` is its Unix time in seconds."""

    version: str
    clock: float
    fsync: str
    synchronous_commit: str
    local: bool
    role: str
    kind: str
    """Rights of the session: owner, worker, bot, person, reader or none."""


@dataclass(frozen=True, slots=True)
class RegisteredWorker:
    """A registered worker; `heartbeat_age` is in seconds, `busy` is the number of its jobs."""

    id: UUID
    host: str
    host_id: str
    pid: int
    pid_started: float
    version: str
    types: list[str]
    queues: list[str]
    slots: int
    draining: bool
    started_at: datetime
    heartbeat_at: datetime
    busy: int
    heartbeat_age: float
    connected: bool
    leader: bool


@dataclass(frozen=True, slots=True)
class IdentityLink:
    """An identity of a channel, and the person it is linked to."""

    channel: Source
    external_id: str
    display_name: str
    person: str
    linked_by: str
    linked_at: datetime


@dataclass(frozen=True, slots=True)
class SavedProfile:
    """A stored profile with the results of its last check."""

    profile: RepoProfile
    checked_at: datetime | None
    checked_commit: str | None
    checks: list[dict[str, Any]]
    updated_by: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ThreadTopic:
    """A job of a thread; `question` is set where a question's message is the thread's root.

    `thread` is the thread in which that message is, if any.
    """

    job: int
    question: int | None
    thread: str | None


@dataclass(frozen=True, slots=True)
class QuestionMessage:
    """The message of an open question.

    `ref` is its reference in a Receipt, `thread` the thread of its target, and `root` the reference
    of the job's status message: the parent where the target has no thread.
    """

    job: int
    question: int
    ref: str
    thread: str | None
    root: str | None


@dataclass(frozen=True, slots=True)
class CardTopic:
    """A job that posts to a card, with a question asked on it.

    `ref` is the reference of the question's comment, None where it is unknown whether it exists.
    """

    job: int
    question: int | None
    ref: str | None


@dataclass(frozen=True, slots=True)
class Archive:
    """An archived month: its file, and the cursor of its last event (None: no events)."""

    month: date
    events: int
    sha256: str
    host: str
    path: str
    archived_at: datetime
    last_epoch: int | None
    last_txid: int | None
    last_id: int | None


@dataclass(frozen=True, slots=True)
class JobArchive:
    """An archived month, with the number of events of a job in it."""

    month: date
    events: int
    host: str
    path: str


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of jobs, questions and workers; `answer_seconds` is the median of the last day.

    `capped` lists the final statuses that were counted only up to 10,000.
    """

    jobs: dict[str, int]
    capped: list[str]
    open_questions: int
    expiring_within_an_hour: int
    next_expiry: datetime | None
    workers: int
    slots: int
    busy: int
    answers_last_day: int
    answer_seconds: float | None
    pauses: int = 0
    """Paused queues and types."""


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """Recent activity; `spans` holds ten-second buckets by their number since the epoch."""

    spans: dict[int, ActivityBucket]
    """Empty buckets are left out."""
    end: tuple[int, int, int]
    """Cursor for the next call."""
    since: int
    """Number of the first bucket that is complete."""
