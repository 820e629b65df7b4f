"""Runs: one execution attempt of a job by one worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from draftsman.domain.job import Mode, Source, Status


class RunStatus(StrEnum):
    """Open (`running`), or how the attempt ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    PAUSED = "paused"
    INTERRUPTED = "interrupted"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class Lease:
    """What a run holds and every write of it proves: the job, the ordinal, the fencing token."""

    job: int
    run: int
    token: int


@dataclass(frozen=True, slots=True)
class Run:
    """One row of `job_runs`; called `D-142.3`."""

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


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job in the hands of this worker, with what a run needs to know of it.

    `status` is `running`, or `claimed` while it waits for a slot; `run` is then 0.
    """

    number: int
    id: UUID
    type: str
    status: Status
    token: int
    run: int
    queue: str
    mode: Mode
    source: Source
    invoker_id: str
    repo_owner: str | None
    repo_name: str | None
    ticket_title: str | None
    ticket_text: str | None
    payload: dict[str, Any]
    overrides: dict[str, Any]
    requested_skills: list[str]
    tags: list[str]
    agent: str | None
    retry_of: int | None
    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int
    created_at: datetime

    @property
    def name(self) -> str:
        """What people call it: `D-142`."""
        return f"D-{self.number}"

    @property
    def lease(self) -> Lease:
        """What every write of the run proves."""
        return Lease(self.number, self.run, self.token)
