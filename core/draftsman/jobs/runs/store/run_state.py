"""Heartbeats and settlement of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import Lease, LeaseState, Run, RunStatus

_Q = load(__name__)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The data written at a run's end; `delay` and `until` apply to `retrying` and `scheduled`."""

    status: Status
    run_status: RunStatus
    result: dict[str, Any] | None = None
    error: str | None = None
    error_class: str | None = None
    attempt: int = 0
    retry: int = 0
    delay: float = 0.0
    until: datetime | None = None
    reason: str | None = None
    exit_code: int | None = None
    detail: dict[str, Any] | None = None
    only_canceled: bool = False
    """Write nothing unless the job has a cancel request."""


@dataclass(frozen=True, slots=True)
class SettledJob:
    """A job after the settlement of its run."""

    status: Status
    next_retry_at: datetime | None


async def settle(conn: Connection, lease: Lease, ending: RunEnd) -> SettledJob | None:
    """Settle a run; return its job, None after a lost lease."""
    params = {
        "job": lease.job,
        "token": lease.token,
        "status": ending.status,
        "run_status": ending.run_status,
        "result": None if ending.result is None else Jsonb(ending.result),
        "error": ending.error,
        "error_class": ending.error_class,
        "attempt": ending.attempt,
        "retry": ending.retry,
        "delay": ending.delay,
        "until": ending.until,
        "reason": ending.reason,
        "exit_code": ending.exit_code,
        "only_canceled": ending.only_canceled,
        "detail": json.dumps(ending.detail) if ending.detail else "",
    }
    records = await rows(conn, _Q["settle"], params)
    return SettledJob(Status(records[0][0]), records[0][1]) if records else None


async def heartbeat(
    conn: Connection, worker: UUID, leases: Sequence[Lease], *, draining: bool
) -> tuple[bool, list[LeaseState]]:
    """Send the heartbeat of a worker and its runs.

    Return whether the worker is still registered, and the state of each lease.
    """
    params = {
        "worker": worker,
        "draining": draining,
        "jobs": [lease.job for lease in leases],
        "runs": [lease.run for lease in leases],
        "tokens": [lease.token for lease in leases],
    }
    records = await rows(conn, _Q["heartbeat"], params)
    registered = any(row[5] for row in records)
    return registered, [LeaseState(*state) for *state, _ in records if state[0]]


async def runs(conn: Connection, job: int) -> list[Run]:
    """Return the runs of a job in order."""
    return await fetch_all(conn, _Q["runs"], {"job": job}, Run)


async def ticket_url(conn: Connection, job: int) -> str | None:
    """Return the URL of the ticket of a job."""
    url: str | None = await scalar(conn, _Q["ticket_url"], {"job": job})
    return url


async def pull_request(conn: Connection, lease: Lease, url: str) -> bool:
    """Record the pull request of a run's job; False after a lost lease."""
    params = {"job": lease.job, "token": lease.token, "url": url}
    return await execute(conn, _Q["pull_request"], params) > 0


async def assign_agent(conn: Connection, lease: Lease, agent: str) -> bool:
    """Set the agent of a run's job that has none; False after a lost lease."""
    params = {"job": lease.job, "token": lease.token, "agent": agent}
    return bool(await scalar(conn, _Q["assign_agent"], params))


async def describe(
    conn: Connection, lease: Lease, params: dict[str, Any], exit_code: int | None
) -> bool:
    """Record the parameters of a run and the exit code of its program; False after a lost lease."""
    fields = {"job": lease.job, "token": lease.token, "exit_code": exit_code}
    return await execute(conn, _Q["describe"], fields | {"params": Jsonb(params)}) > 0
