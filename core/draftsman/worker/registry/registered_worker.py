"""Registered workers, their liveness, and which of them serve a queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RegisteredWorker:
    """A registered worker; `heartbeat_age` is in seconds, `busy` is the number of its jobs.

    `lost`: it was silent for its lease, or for 15 s without a session; all that count live workers
    leave it out.
    """

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
    lost: bool
    leader: bool


@dataclass(frozen=True, slots=True)
class ServingWorker:
    """A worker that claims jobs now."""

    queues: list[str]
    types: list[str]


def missing_worker(serving: Sequence[ServingWorker], queue: str, type: str) -> str | None:
    """Return `no_worker` or `unknown_type` as `why` does; None if a worker may run the job."""
    types = [worker.types for worker in serving if queue in worker.queues]
    if not types:
        return "no_worker"
    return None if any(type in served for served in types) else "unknown_type"
