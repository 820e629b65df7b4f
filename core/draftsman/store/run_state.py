"""Rows of runs that beat and end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.domain.job import Status
from draftsman.domain.run import Lease, RunStatus
from draftsman.store.postgres.database import Connection, execute, rows
from draftsman.store.queries import load

_Q = load("run_state")


@dataclass(frozen=True, slots=True)
class RunEnd:
    """What a run's end writes. `delay` and `until` serve `retrying` and `scheduled`."""

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
    """Write nothing unless somebody wanted the job canceled."""


@dataclass(frozen=True, slots=True)
class SettledJob:
    """Where the end of a run left its job."""

    status: Status
    next_retry_at: datetime | None


async def settle(conn: Connection, lease: Lease, ending: RunEnd) -> SettledJob | None:
    """Write the end; return where the job is now, or None when the run had lost its job."""
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
    found = await rows(conn, _Q["settle"], params)
    return SettledJob(Status(found[0][0]), found[0][1]) if found else None


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What a heartbeat learned of one run."""

    token: int
    owned: bool
    canceled: bool


async def heartbeat(
    conn: Connection, worker: UUID, leases: Sequence[Lease], *, draining: bool
) -> tuple[bool, list[LeaseState]]:
    """Beat for the worker and its runs; return whether it is still registered, and a pulse each."""
    params = {
        "worker": worker,
        "draining": draining,
        "jobs": [lease.job for lease in leases],
        "runs": [lease.run for lease in leases],
        "tokens": [lease.token for lease in leases],
    }
    found = await rows(conn, _Q["heartbeat"], params)
    registered = any(row[3] for row in found)
    return registered, [LeaseState(token, owned, gone) for token, owned, gone, _ in found if token]


async def usage(conn: Connection, lease: Lease, amounts: dict[str, Any]) -> bool:
    """Record what the run used; False when it had lost its job."""
    params = {"job": lease.job, "token": lease.token, "usage": Jsonb(amounts)}
    return await execute(conn, _Q["usage"], params) > 0
