"""Locks of jobs, cancels that need one, and jobs that are due."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from draftsman.database.database import Connection, execute, fetch_one, rows, scalar
from draftsman.database.named_queries import load, load_parts
from draftsman.database.selection import ALL, Selection
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm, Lease

_Q = load(__name__)

PROMOTE_DUE: Final = load_parts(__name__)["promote_due"]
"""Query of the time when the sweep is due."""


async def missing(conn: Connection, jobs: Collection[int]) -> int | None:
    """Return the first of these numbers that no job has."""
    number: int | None = await scalar(conn, _Q["missing"], {"jobs": [*jobs]})
    return number


async def lock(conn: Connection, job: int) -> bool:
    """Lock a job; False when it does not exist."""
    return await scalar(conn, _Q["lock"], {"job": job}) is not None


async def lock_jobs(conn: Connection, jobs: Sequence[int]) -> list[int]:
    """Lock jobs in order; return those that exist."""
    return [row[0] for row in await rows(conn, _Q["lock_jobs"], {"jobs": list(jobs)})]


async def lock_run(conn: Connection, lease: Lease) -> bool:
    """Lock the job of a run; return whether it has the lease."""
    params = {"job": lease.job, "token": lease.token}
    return await scalar(conn, _Q["lock_run"], params) is not None


async def submission(conn: Connection, job: int) -> tuple[UUID, str | None] | None:
    """Return the id of a job, and the trace that it was submitted in."""
    for id, traceparent in await rows(conn, _Q["submission"], {"job": job}):
        return id, traceparent
    return None


# Locked jobs, and their cancellation: for all that ends the job of another.


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


async def lock_to_cancel(conn: Connection, job: int) -> LockedJob | None:
    """Lock a job."""
    return await fetch_one(conn, _Q["lock_to_cancel"], {"job": job}, LockedJob)


async def request_cancel(conn: Connection, job: int, by: str, reason: str | None) -> bool:
    """Request that a running job stops; False when that was requested before."""
    detail = json.dumps({"reason": reason} if reason else {})
    params = {"job": job, "by": by, "reason": reason, "detail": detail}
    return bool(await scalar(conn, _Q["request_cancel"], params))


async def cancel_now(conn: Connection, job: int, by: str, reason: str | None) -> None:
    """Cancel a locked job that is not finished."""
    await execute(conn, _Q["cancel_now"], {"job": job, "by": by, "reason": reason})


# Scheduled and retrying jobs that are due.


async def promote(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Queue due jobs; return their number."""
    return len(await rows(conn, _Q["promote"], term.params(limit) | selection.params))


async def promote_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs that `promote` would queue."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["promote_candidates"], params)]
