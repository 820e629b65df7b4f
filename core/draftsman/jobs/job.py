"""The job and its state machine.

`TRANSITIONS` is the only definition of the life cycle in Python. The trigger in
`migrations/functions/jobs.sql` enforces the same table; a test generates one from the
other and tries every pair of statuses against PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from draftsman.channels import ChannelName
from draftsman.formats.json_data import OPTIONAL
from draftsman.ids import job_name
from draftsman.text import STORED_SENTENCE

AGENT_TYPE: Final = "run_agent"
"""Type of the jobs that agents do."""


class Status(StrEnum):
    """Status of a job."""

    SCHEDULED = "scheduled"
    QUEUED = "queued"
    CLAIMED = "claimed"
    RUNNING = "running"
    WAITING_FOR_INPUT = "waiting_for_input"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    RESUMED = "resumed"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELED = "canceled"
    EXPIRED = "expired"


class Mode(StrEnum):
    """Whether a job may change the repository."""

    INVESTIGATE = "investigate"
    FIX = "fix"


class GroupKind(StrEnum):
    """Whether the jobs of a group run at the same time or one after another."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class OnFailure(StrEnum):
    """What follows in a group when a job of it ends otherwise than completed."""

    STOP = "stop"
    CONTINUE = "continue"


class Source(StrEnum):
    """Origins of requests and answers that are no channels."""

    TUI = "tui"
    CLI = "cli"
    API = "api"
    MCP = "mcp"
    SCHEDULE = "schedule"
    INTERNAL = "internal"


class OnLost(StrEnum):
    """Policy for a job whose worker died during a run."""

    RETRY = "retry"
    RESUME = "resume"
    FAIL = "fail"
    NEW_JOB = "new_job"


class Condition(StrEnum):
    """How a parent has to end so that its child starts; every end but completed is a failure."""

    SUCCESS = "success"
    FAILURE = "failure"
    ANY = "any"


ENUMS: Final = {"job_status": Status, "job_mode": Mode, "on_lost": OnLost}
"""Enums that are types of the database."""

S = Status
TERMINAL: Final = frozenset({S.COMPLETED, S.FAILED, S.DEAD_LETTER, S.CANCELED, S.EXPIRED})
FAILURES: Final = frozenset({S.FAILED, S.DEAD_LETTER})
"""Statuses of jobs that failed; those that nobody has seen to yet are open failures."""
WAITING: Final = frozenset({S.WAITING_FOR_INPUT, S.WAITING_FOR_APPROVAL})
LEASED: Final = frozenset({S.CLAIMED, S.RUNNING})
CLAIMABLE: Final = frozenset({S.QUEUED, S.RESUMED})
"""Statuses of jobs that a worker claims, if nothing holds them."""
INITIAL: Final = frozenset({S.SCHEDULED, S.QUEUED})

TRANSITIONS: Final[dict[tuple[Status, Status], str]] = {
    (S.SCHEDULED, S.QUEUED): "job_promoted",
    (S.SCHEDULED, S.RESUMED): "job_woken",
    (S.SCHEDULED, S.CANCELED): "job_canceled",
    (S.QUEUED, S.CLAIMED): "job_claimed",
    (S.QUEUED, S.CANCELED): "job_canceled",
    (S.CLAIMED, S.RUNNING): "job_started",
    (S.CLAIMED, S.QUEUED): "job_returned",
    (S.CLAIMED, S.RESUMED): "job_returned",
    (S.CLAIMED, S.CANCELED): "job_canceled",
    (S.RUNNING, S.WAITING_FOR_INPUT): "needs_input",
    (S.RUNNING, S.WAITING_FOR_APPROVAL): "needs_approval",
    (S.RUNNING, S.SCHEDULED): "job_snoozed",
    (S.RUNNING, S.COMPLETED): "job_completed",
    (S.RUNNING, S.FAILED): "job_failed",
    (S.RUNNING, S.DEAD_LETTER): "job_dead_lettered",
    (S.RUNNING, S.RETRYING): "job_retrying",
    (S.RUNNING, S.CANCELED): "job_canceled",
    (S.RUNNING, S.RESUMED): "job_released",
    (S.WAITING_FOR_INPUT, S.RESUMED): "job_resumed",
    (S.WAITING_FOR_INPUT, S.EXPIRED): "job_expired",
    (S.WAITING_FOR_INPUT, S.CANCELED): "job_canceled",
    (S.WAITING_FOR_APPROVAL, S.WAITING_FOR_INPUT): "needs_input",
    (S.WAITING_FOR_APPROVAL, S.RESUMED): "job_resumed",
    (S.WAITING_FOR_APPROVAL, S.FAILED): "job_failed",
    (S.WAITING_FOR_APPROVAL, S.EXPIRED): "job_expired",
    (S.WAITING_FOR_APPROVAL, S.CANCELED): "job_canceled",
    (S.RESUMED, S.CLAIMED): "job_claimed",
    (S.RESUMED, S.CANCELED): "job_canceled",
    (S.RETRYING, S.QUEUED): "job_retried",
    (S.RETRYING, S.CANCELED): "job_canceled",
}
"""Each transition and the kind of its event."""

FUSED: Final[dict[tuple[Status, Status], Status]] = {
    (S.QUEUED, S.RUNNING): S.CLAIMED,
    (S.RESUMED, S.RUNNING): S.CLAIMED,
}
"""Two transitions in one write, and the status between them: version grows by two, two events."""


def steps(before: Status, after: Status) -> int:
    """Return by how much `version` grows in a transition; 0 if it is not allowed."""
    if (before, after) in FUSED:
        return 2
    return 1 if (before, after) in TRANSITIONS else 0


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """What an agent is asked to do and where, in short; a job of any other type has none."""

    mode: Mode
    agent: str | None
    repo_host: str | None
    """Host of the repository; None for a local folder."""
    repo_owner: str | None
    repo_name: str | None

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Self | None:
        """Return the request in the columns of a job; a job without a mode has none."""
        if columns["mode"] is None:
            return None
        return cls(**{field.name: columns[field.name] for field in fields(cls)})

    @property
    def repo(self) -> str | None:
        """`owner/name`, or the bare name of a repository without an owner."""
        if self.repo_name is None:
            return None
        return f"{self.repo_owner}/{self.repo_name}" if self.repo_owner else self.repo_name

    @property
    def summary(self) -> RequestSummary:
        """The request in short."""
        return RequestSummary(
            self.mode, self.agent, self.repo_host, self.repo_owner, self.repo_name
        )


@dataclass(frozen=True, slots=True)
class AgentRequest(RequestSummary):
    """What an agent is asked to do, and where."""

    text: str | None
    """The instructions."""
    skills: list[str]


class Requested:
    """What a job and a job of a run say of their request."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def type(self) -> str: ...

        @property
        def title(self) -> str: ...

        @property
        def request(self) -> AgentRequest | None: ...

    @property
    def own_title(self) -> str | None:
        """The title that it was given."""
        return None if self.title == self.type else self.title

    @property
    def agent_request(self) -> AgentRequest:
        """What an agent is asked to do; raises ValueError for other jobs."""
        if self.request is None:
            raise ValueError(f"a job of type {self.type} is no request of an agent")
        return self.request


@dataclass(frozen=True, slots=True)
class Job(Requested):
    """A row of `jobs`."""

    number: int
    id: UUID
    type: str
    idempotency_key: str
    request_digest: str
    queue: str
    priority: int
    position: int
    subject_key: str | None
    concurrency_key: str | None
    hold: str | None
    """Why the claim leaves the job out: `paused`, `key` or `limit`."""
    held_by: str | None
    """The limit in which it waits for a place."""
    status: Status
    claimed_from: Status | None
    source: ChannelName
    source_type: str
    external_event_id: str | None
    invoker_id: str
    invoker_display_name: str | None
    title: str
    """Its title; the type of a job without a title."""
    url: str | None
    """The page where it was requested, such as a card."""
    payload: dict[str, Any]
    overrides: dict[str, Any]
    tags: list[str]
    retry_of: int | None
    chain_length: int
    template: str | None
    template_version: int | None
    run_at: datetime | None
    run_count: int
    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int
    next_retry_at: datetime | None
    last_error: str | None = field(metadata=STORED_SENTENCE)
    error_class: str | None
    on_lost: OnLost
    worker_id: UUID | None
    lease_token: int | None
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    cancel_reason: str | None = field(metadata=STORED_SENTENCE)
    result: dict[str, Any] | None
    version: int
    created_at: datetime
    queued_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    request: AgentRequest | None = field(default=None, metadata=OPTIONAL)
    """What an agent is asked to do; None for other jobs."""
    pr_url: str | None = field(default=None, metadata=OPTIONAL)
    """URL of its pull request."""

    @property
    def name(self) -> str:
        """Display name: `D-142`."""
        return job_name(self.number)
