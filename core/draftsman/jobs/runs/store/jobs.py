"""Existence and locks of jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from draftsman.database.database import Connection, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.runs.run import Lease

_Q = load("jobs")


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
