"""Rows of claims."""

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
    """Settle `done` as completed and claim; settled jobs come back with a terminal status."""
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
    return await _taken(conn, _Q["exchange"], params)


async def start(conn: Connection, leases: Sequence[Lease]) -> list[ClaimedJob]:
    """Start claimed jobs; those that are no longer ours are left out."""
    return await _taken(conn, _Q["start"], _leases(leases))


async def release_claims(conn: Connection, leases: Sequence[Lease], detail: str) -> int:
    """Return claimed jobs to where they came from; return how many."""
    return await execute(conn, _Q["release_claims"], {**_leases(leases), "detail": detail})


async def known_types(conn: Connection, type: str, lease: float) -> tuple[int, list[str]]:
    """Return how many live workers know the type, and all the types known."""
    able, types = (await rows(conn, _Q["known_types"], {"type": type, "lease": lease}))[0]
    return able, types


async def previous_runtime(conn: Connection, lease: Lease) -> float:
    """Return the seconds of the earlier runs."""
    return float(await scalar(conn, _Q["previous_runtime"], {"job": lease.job, "run": lease.run}))


async def release_lost_claims(conn: Connection, worker: UUID, tokens: Sequence[int]) -> int:
    """Return jobs that the worker holds under other tokens than these; return how many."""
    params = {"worker": worker, "tokens": list(tokens)}
    return len(await rows(conn, _Q["release_lost_claims"], params))


async def open_runs(conn: Connection, jobs: Sequence[int]) -> list[tuple[int, UUID, int | None]]:
    """Return number, id and open run, None without one, of the jobs that exist."""
    found = await rows(conn, _Q["open_runs"], {"jobs": list(jobs)})
    return [(number, id, run) for number, id, run in found]


async def _taken(conn: Connection, query: LiteralString, params: Params) -> list[ClaimedJob]:
    async with conn.cursor(row_factory=args_row(ClaimedJob)) as cursor:
        await cursor.execute(query, params)
        return await cursor.fetchall()


def _leases(leases: Sequence[Lease]) -> dict[str, Any]:
    return {"jobs": [one.job for one in leases], "tokens": [one.token for one in leases]}
