"""Runs: execution attempts of a job by a worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from draftsman.errors import LeaseLost
from draftsman.formats.json_data import OPTIONAL
from draftsman.ids import job_name
from draftsman.jobs.job import AgentRequest, Mode, Requested, Status
from draftsman.jobs.retries import RetryCounts
from draftsman.jobs.status_display import Meaning
from draftsman.text import STORED_SENTENCE

T = TypeVar("T")


class RunStatus(StrEnum):
    """Status of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    PARKED = "parked"
    INTERRUPTED = "interrupted"
    CANCELED = "canceled"


MEANINGS: Final[Mapping[RunStatus, Meaning]] = {
    RunStatus.RUNNING: Meaning.ACTIVE,
    RunStatus.COMPLETED: Meaning.SUCCESS,
    RunStatus.FAILED: Meaning.FAILURE,
    RunStatus.SKIPPED: Meaning.NEUTRAL,
    RunStatus.PARKED: Meaning.WARNING,
    RunStatus.INTERRUPTED: Meaning.WARNING,
    RunStatus.CANCELED: Meaning.NEUTRAL,
}
ENUMS: Final = {"run_status": RunStatus}
"""Enums that are types of the database."""


class Lease(NamedTuple):
    """The lease of a run, which fences each of its writes: job, ordinal of the run, token."""

    job: int
    run: int
    token: int


def lease_lost(lease: Lease) -> LeaseLost:
    """Return the error for a write of a run that no longer owns its job."""
    return LeaseLost(f"run {lease.run} no longer owns {job_name(lease.job)}")


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `job_runs`, displayed as `D-142.3`."""

    job: int
    ordinal: int
    worker_id: UUID
    lease_token: int
    params_snapshot: dict[str, Any]
    status: RunStatus
    heartbeat_at: datetime
    started_at: datetime
    finished_at: datetime | None
    exit_code: int | None
    error: str | None = field(metadata=STORED_SENTENCE)
    error_class: str | None
    usage: dict[str, Any] | None
    result: dict[str, Any] | None
    title: str = ""
    """Title of its job, in lists of the runs of all jobs."""
    repo: str | None = field(default=None, metadata=OPTIONAL)
    """Repository of its job, likewise."""


_STATUSES: Final = {status.value: status for status in Status}
"""Statuses by text: a look-up is cheaper than a call of the enum."""


class _Column(Generic[T]):
    """A column of a claimed job."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, job: ClaimedJob, owner: type) -> T:
        value: T = job.row[self._index]
        return value


class _Parsed(Generic[T]):
    """A column of a claimed job, parsed on first access."""

    def __init__(self, index: int, parse: Callable[[str], T]) -> None:
        self._index = index
        self._parse = parse

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, job: ClaimedJob, owner: type) -> T:
        value = self._parse(job.row[self._index])
        job.__dict__[self._name] = value
        return value


class ClaimedJob(Requested):
    """A job claimed by this worker, with the columns that a run needs.

    `status` is `running`, `claimed` while the job waits for a slot (`run` is then 0), or the final
    status. Columns are parsed on first access, because a worker claims thousands of jobs a second
    and a handler reads few columns.
    """

    def __init__(self, row: Sequence[Any]) -> None:
        self.row = row
        self.number: int = row[0]
        self.token: int = row[1]
        self.run: int = row[2]
        self.status = _STATUSES[row[3]]
        self.type: str = row[4]

    queue = _Column[str](5)
    invoker_id = _Column[str](6)
    retry_of = _Column[int | None](12)
    attempts = _Column[int](13)
    max_attempts = _Column[int](14)
    retry_count = _Column[int](15)
    max_retries = _Column[int](16)
    id = _Parsed(17, UUID)
    source = _Column[str](19)
    payload = _Parsed[dict[str, Any]](20, json.loads)
    overrides = _Parsed[dict[str, Any]](21, json.loads)
    tags = _Parsed[list[str]](23, json.loads)
    created_at = _Parsed(24, datetime.fromisoformat)
    waited = _Column[float | None](26)
    """Seconds that it waited for a worker until it was claimed, or started if that was later."""
    place = _Column[int | None](27)
    """Its place among the jobs of its claim; None: a run that the claim settled handed it over."""

    @cached_property
    def title(self) -> str:
        """Its title; the type of a job without a title."""
        title: str | None = self.row[9]
        return title or self.type

    @cached_property
    def request(self) -> AgentRequest | None:
        """What an agent is asked to do; None for other jobs."""
        row = self.row
        if row[18] is None:
            return None
        return AgentRequest(
            mode=Mode(row[18]),
            agent=row[11],
            repo_host=row[25],
            repo_owner=row[7],
            repo_name=row[8],
            text=row[10],
            skills=json.loads(row[22]),
        )

    @property
    def has_overrides(self) -> bool:
        """Whether the job overrides limits of its type; parses nothing."""
        return bool(self.row[21] != "{}")

    @property
    def name(self) -> str:
        """Display name: `D-142`."""
        return job_name(self.number)

    @property
    def retry_counts(self) -> RetryCounts:
        """The attempts and retries before this run."""
        return RetryCounts(self.attempts, self.max_attempts, self.retry_count, self.max_retries)

    @property
    def lease(self) -> Lease:
        """The lease for the run's writes."""
        return Lease(self.number, self.run, self.token)


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A run's lease as reported by a heartbeat."""

    token: int
    owned: bool
    renewed: bool
    """False as long as another transaction has locked the run."""
    canceled: bool
    paused: bool = False


NO_OWNER = UUID(int=0)


@dataclass(frozen=True, slots=True)
class LeaderTerm:
    """The lease that a sweep proves; without a term, a sweep run by hand proves none."""

    owner: UUID = NO_OWNER
    term: int | None = None

    def params(self, limit: int) -> dict[str, Any]:
        """Return the parameters of all sweep statements."""
        return {"owner": self.owner, "term": self.term, "limit": limit}
