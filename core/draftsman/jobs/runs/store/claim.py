"""Claims of jobs by workers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from draftsman.database.database import Connection, execute, rows, scalar
from draftsman.database.named_queries import load
from draftsman.database.pinned_connection import (
    fetch,
    integer_array,
    statement,
    text_array,
)
from draftsman.jobs.runs.run import ClaimedJob, Lease

_Q = load(__name__)
_to_json: Final = json.JSONEncoder().encode


async def exchange(
    conn: Connection,
    done: Sequence[tuple[Lease, dict[str, Any]]],
    *,
    worker: UUID,
    queues: Sequence[str],
    types: Sequence[str],
    free: int,
    ahead: int,
    after: int | None = None,
) -> list[ClaimedJob]:
    """Settle `done` as completed and claim, from the start of the queues or `after` a job of one.

    Settled jobs come first, with a final status; then the claimed jobs in the order of their queue,
    whatever the order in which the database updated them.
    """
    if after is None:
        query = statement(_Q["exchange"], "free", "ahead")
    else:
        query = statement(_Q["exchange_after"], "free", "ahead", "after")
    done = sorted(done, key=itemgetter(0))
    params = {
        "jobs": integer_array([lease.job for lease, _ in done]),
        "tokens": integer_array([lease.token for lease, _ in done]),
        "results": text_array([_to_json(result) if result else "{}" for _, result in done]),
        "worker": worker,
        "queues": text_array(queues),
        "types": text_array(types),
        "free": free,
        "ahead": ahead,
        "after": after,
    }
    return [ClaimedJob(row) for row in sorted(await fetch(conn, query, params), key=_place)]


def _place(row: Sequence[Any]) -> float:
    """Return where a row of an exchange belongs; settled jobs have no type and no place."""
    if row[-1] is not None:
        place: int = row[-1]
        return place
    return 0 if row[4] is None else math.inf  # handed over by a settled job


async def claimable_jobs(
    conn: Connection,
    queues: Sequence[str],
    types: Sequence[str],
    without: Sequence[int],
    limit: int,
) -> list[int]:
    """Return the jobs among which a claim chooses, in its order: `limit` of each queue."""
    params = {"queues": list(queues), "types": list(types), "without": list(without)}
    return [row[0] for row in await rows(conn, _Q["claimable_jobs"], params | {"limit": limit})]


async def keep_from_claims(conn: Connection, jobs: Sequence[int]) -> None:
    """Lock queued jobs for this transaction: the claims of other sessions skip them."""
    await rows(conn, _Q["keep_from_claims"], {"jobs": list(jobs)})


async def start(conn: Connection, leases: Sequence[Lease]) -> list[ClaimedJob]:
    """Start claimed jobs; jobs that this worker no longer holds are left out."""
    return [ClaimedJob(row) for row in await rows(conn, _Q["start"], _leases(leases))]


async def release_claims(conn: Connection, leases: Sequence[Lease], detail: str) -> int:
    """Return claimed jobs to their previous status; return their number."""
    return await execute(conn, _Q["release_claims"], {**_leases(leases), "detail": detail})


async def previous_runtime(conn: Connection, lease: Lease) -> float:
    """Return the runtime of the job's earlier runs, in seconds."""
    return float(await scalar(conn, _Q["previous_runtime"], {"job": lease.job, "run": lease.run}))


async def release_lost_claims(
    conn: Connection, worker: UUID, tokens: Sequence[int], in_grace: Sequence[Lease]
) -> int:
    """Release jobs that the worker holds under other tokens; return their number.

    Claims of jobs whose parked runs are `in_grace` are kept.
    """
    params = {
        "worker": worker,
        "tokens": list(tokens),
        "grace_jobs": [lease.job for lease in in_grace],
        "grace_runs": [lease.run for lease in in_grace],
    }
    return len(await rows(conn, _Q["release_lost_claims"], params))


async def held(conn: Connection, worker: UUID, leases: Sequence[Lease]) -> set[int]:
    """Return the tokens of those leases that the worker still has."""
    params = {"worker": worker, **_leases(leases)}
    return {token for (token,) in await rows(conn, _Q["held"], params)}


async def claim_in_grace(conn: Connection, worker: UUID, parked: Lease) -> tuple[bool, int | None]:
    """Return whether the job of a parked run waits for its answer.

    The second value is the token of the claim that the answer made for the worker.
    """
    params = {"worker": worker, "job": parked.job, "run": parked.run}
    for waiting, token in await rows(conn, _Q["claim_in_grace"], params):
        return waiting, token
    return False, None


async def end_grace(conn: Connection, worker: UUID, parked: Lease) -> None:
    """End the grace period of a parked run with this worker, if it has one."""
    params = {"worker": worker, "job": parked.job, "token": parked.token}
    await execute(conn, _Q["end_grace"], params)


async def open_runs(conn: Connection, jobs: Sequence[int]) -> list[tuple[int, UUID, int | None]]:
    """Return (number, id, open run or None) of the jobs that exist."""
    records = await rows(conn, _Q["open_runs"], {"jobs": list(jobs)})
    return [(number, id, run) for number, id, run in records]


def _leases(leases: Sequence[Lease]) -> dict[str, Any]:
    return {"jobs": [lease.job for lease in leases], "tokens": [lease.token for lease in leases]}
