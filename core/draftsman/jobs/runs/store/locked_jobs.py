"""Locked jobs, and their cancellation: for all that ends the job of another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from draftsman.database.database import Connection, execute, fetch_one, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.job import Status

_Q = load("locked_jobs")


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A locked job."""

    number: int
    type: str
    status: Status
    invoker_id: str
    worker_id: UUID | None
    run_count: int
    canceling: bool


async def lock(conn: Connection, job: int) -> LockedJob | None:
    """Lock a job."""
    return await fetch_one(conn, _Q["lock"], {"job": job}, LockedJob)


async def request_cancel(conn: Connection, job: int, by: str, reason: str | None) -> bool:
    """Request that a running job stops; False when that was requested before."""
    detail = json.dumps({"reason": reason} if reason else {})
    params = {"job": job, "by": by, "reason": reason, "detail": detail}
    return bool(await scalar(conn, _Q["request_cancel"], params))


async def cancel_now(conn: Connection, job: int, by: str, reason: str | None) -> None:
    """Cancel a locked job that is not finished."""
    await execute(conn, _Q["cancel_now"], {"job": job, "by": by, "reason": reason})
