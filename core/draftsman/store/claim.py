"""Claims of jobs by workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import args_row
from psycopg.types.json import Jsonb

from draftsman.domain.run import ClaimedJob, Lease
from draftsman.store.postgres.database import Connection, Params, execute, rows, scalar
from draftsman.store.queries import load

_Q = load("claim")


async def exchange(
    conn: Connection,
    done: Sequence[tuple[Lease, dict[str, Any]]],
    *,
    worker: UUID,
    queues: Sequence[str],
    types: Sequence[str],
    skip: Sequence[str],
    free: int,
    ahead: int,
) -> list[ClaimedJob]:
    """Settle `done` as completed and claim; settled jobs are returned with a final status."""
    params = {
        "jobs": [lease.job for lease, _ in done],
        "tokens": [lease.token for lease, _ in done],
        "results": [Jsonb(result) for _, result in done],
        "worker": worker,
        "queues": list(queues),
        "types": list(types),
        "skip": list(skip),
        "free": free,
        "ahead": ahead,
    }
    return await _fetch_jobs(conn, _Q["exchange"], params)


async def start(conn: Connection, leases: Sequence[Lease]) -> list[ClaimedJob]:
    """Start claimed jobs; jobs that this worker no longer holds are left out."""
    return await _fetch_jobs(conn, _Q["start"], _leases(leases))


async def release_claims(conn: Connection, leases: Sequence[Lease], detail: str) -> int:
    """Return claimed jobs to their previous status; return their number."""
    return await execute(conn, _Q["release_claims"], {**_leases(leases), "detail": detail})


async def known_types(conn: Connection, type: str, lease: float) -> tuple[int, list[str]]:
    """Return how many live workers handle the type, and all handled types."""
    handling, types = (await rows(conn, _Q["known_types"], {"type": type, "lease": lease}))[0]
    return handling, types


async def previous_runtime(conn: Connection, lease: Lease) -> float:
    """Return the runtime of the job's earlier runs, in seconds."""
    return float(await scalar(conn, _Q["previous_runtime"], {"job": lease.job, "run": lease.run}))


async def release_lost_claims(conn: Connection, worker: UUID, tokens: Sequence[int]) -> int:
    """Release jobs that the worker holds under other tokens; return their number."""
    params = {"worker": worker, "tokens": list(tokens)}
    return len(await rows(conn, _Q["release_lost_claims"], params))


async def open_runs(conn: Connection, jobs: Sequence[int]) -> list[tuple[int, UUID, int | None]]:
    """Return (number, id, open run or None) of the jobs that exist."""
    records = await rows(conn, _Q["open_runs"], {"jobs": list(jobs)})
    return [(number, id, run) for number, id, run in records]


async def _fetch_jobs(conn: Connection, query: LiteralString, params: Params) -> list[ClaimedJob]:
    async with conn.cursor(row_factory=args_row(ClaimedJob)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


def _leases(leases: Sequence[Lease]) -> dict[str, Any]:
    return {"jobs": [lease.job for lease in leases], "tokens": [lease.token for lease in leases]}
