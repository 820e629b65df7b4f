"""Rows that people change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.domain.job import Status
from draftsman.store.postgres.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.store.queries import load

_Q = load("job_control")


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job under its lock."""

    number: int
    status: Status
    invoker_id: str
    worker_id: UUID | None
    run_count: int
    canceling: bool


async def lock(conn: Connection, job: int) -> LockedJob | None:
    """Lock one job."""
    return await fetch_one(conn, _Q["lock"], {"job": job}, LockedJob)


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that ended; `wanted` says whether it is like what was asked for."""

    number: int
    status: Status
    type: str
    agent: str | None
    ticket_title: str | None
    last_error: str | None
    finished_at: datetime
    wanted: bool
    followed_by: int | None
    """Its retry, if it has one."""


async def finished(
    conn: Connection, status: Status, filters: dict[str, Any], after: int, limit: int
) -> list[FinishedJob]:
    """Return the jobs that ended so, with numbers over `after`, in their order."""
    params = filters | {"status": status, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["finished"], params, FinishedJob)


async def request_cancel(conn: Connection, job: int, by: str, reason: str | None) -> bool:
    """Ask a running job to stop; False when it was asked before."""
    detail = json.dumps({"reason": reason} if reason else {})
    params = {"job": job, "by": by, "reason": reason, "detail": detail}
    return bool(await scalar(conn, _Q["request_cancel"], params))


async def cancel_now(conn: Connection, job: int, by: str, reason: str | None) -> None:
    """End a job that the caller has locked and that is not finished."""
    await execute(conn, _Q["cancel_now"], {"job": job, "by": by, "reason": reason})


async def refuse(conn: Connection, job: int, by: str, detail: dict[str, Any]) -> None:
    """Note what somebody may not do to a job that is locked, once for its `event`."""
    await execute(conn, _Q["refuse"], {"job": job, "by": by, "detail": Jsonb(detail)})


async def request_columns(conn: Connection, job: int) -> tuple[dict[str, Any], int] | None:
    """Return every column of the job as JSON, and the first job of its chain."""
    found = await rows(conn, _Q["request_columns"], {"job": job})
    return (found[0][0], found[0][1]) if found else None


async def copy_checkpoint(conn: Connection, old: int, new: int) -> bool:
    """Copy the newest checkpoint and work bundle; False when there is none."""
    return bool(await scalar(conn, _Q["copy_checkpoint"], {"old": old, "new": new}))


async def late_answer(conn: Connection, job: int) -> tuple[str, str] | None:
    """Return a question's key and the answer that came too late for it."""
    found = await rows(conn, _Q["late_answer"], {"job": job})
    return (found[0][0], found[0][1]) if found else None
