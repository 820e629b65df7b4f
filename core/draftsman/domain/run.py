"""Runs: execution attempts of a job by a worker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from draftsman.domain.ids import job_name
from draftsman.domain.job import Mode, Source, Status
from draftsman.errors import LeaseLost

T = TypeVar("T")


class RunStatus(StrEnum):
    """Status of a run."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class Lease:
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
    error: str | None
    error_class: str | None
    usage: dict[str, Any] | None
    result: dict[str, Any] | None


class _Parsed(Generic[T]):
    """A column of a claimed job, parsed on first access."""

    def __init__(self, index: int, parse: Callable[[Any], T] = lambda value: value) -> None:
        self._index = index
        self._parse = parse

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, job: ClaimedJob, owner: type) -> T:
        value: T = self._parse(job.columns[self._index])
        job.__dict__[self._name] = value
        return value


class ClaimedJob:
    """A job claimed by this worker, with the columns that a run needs.

    `status` is `running`, `claimed` while the job waits for a slot (`run` is then 0), or the final
    status. Columns are parsed on first access, because a worker claims thousands of jobs a second
    and a handler reads few columns.
    """

    def __init__(self, number: int, token: int, run: int, status: str, *columns: Any) -> None:
        self.number = number
        self.token = token
        self.run = run
        self.status = Status(status)
        self.columns = columns

    type = _Parsed[str](0)
    queue = _Parsed[str](1)
    invoker_id = _Parsed[str](2)
    repo_owner = _Parsed[str | None](3)
    repo_name = _Parsed[str | None](4)
    ticket_title = _Parsed[str | None](5)
    ticket_text = _Parsed[str | None](6)
    agent = _Parsed[str | None](7)
    retry_of = _Parsed[int | None](8)
    attempts = _Parsed[int](9)
    max_attempts = _Parsed[int](10)
    retry_count = _Parsed[int](11)
    max_retries = _Parsed[int](12)
    id = _Parsed(13, UUID)
    mode = _Parsed(14, Mode)
    source = _Parsed(15, Source)
    payload = _Parsed[dict[str, Any]](16, json.loads)
    overrides = _Parsed[dict[str, Any]](17, json.loads)
    requested_skills = _Parsed[list[str]](18, json.loads)
    tags = _Parsed[list[str]](19, json.loads)
    created_at = _Parsed(20, datetime.fromisoformat)

    @property
    def name(self) -> str:
        """Display name: `D-142`."""
        return job_name(self.number)

    @property
    def lease(self) -> Lease:
        """The lease for the run's writes."""
        return Lease(self.number, self.run, self.token)


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A run's lease as reported by a heartbeat."""

    token: int
    owned: bool
    canceled: bool


NO_OWNER = UUID(int=0)


@dataclass(frozen=True, slots=True)
class LeaderTerm:
    """The lease that a sweep proves; without a term, a sweep run by hand proves none."""

    owner: UUID = NO_OWNER
    term: int | None = None

    def params(self, limit: int) -> dict[str, Any]:
        """Return the parameters of all sweep statements."""
        return {"owner": self.owner, "term": self.term, "limit": limit}
