"""Activity of agents, and the transcripts of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from draftsman.agent_runs.activity.activity import Activity, ActivityRow
from draftsman.agent_runs.activity.live_thread import CARD_INTERVAL
from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.job_summary import JobFigures
from draftsman.jobs.runs.run import Lease

_Q = load(__name__)


async def append(
    conn: Connection, lease: Lease, first: int, rows: Sequence[Activity], age: float = 0
) -> datetime | None:
    """Store rows from this position on; return their time, None after a lost lease.

    `age`: seconds since the first of them.
    """
    data = [
        {
            "seq": seq,
            "kind": row.kind,
            "state": row.state,
            "key": row.key,
            "text": row.text,
            "detail": dict(row.detail),
            "continues": row.continues,
        }
        for seq, row in enumerate(rows, first)
    ]
    params = {"job": lease.job, "token": lease.token, "items": Jsonb(data), "age": age}
    return await scalar(conn, _Q["append"], params)  # type: ignore[no-any-return]


async def figures(conn: Connection, jobs: Sequence[int]) -> list[JobFigures]:
    """Return cost and changes of jobs."""
    return await fetch_all(conn, _Q["figures"], {"jobs": list(jobs)}, JobFigures)


async def latest(conn: Connection, jobs: Sequence[int]) -> list[tuple[int, ActivityRow]]:
    """Return the newest plan and the newest line of each job, with its number."""
    records = await rows(conn, _Q["latest"], {"jobs": list(jobs)})
    return [(number, ActivityRow(*fields)) for number, *fields in records]


async def evict(conn: Connection, job: int, most: int, most_bytes: int) -> int:
    """Delete all but the newest rows of a job; return the number of deleted rows."""
    params = {"job": job, "most": most, "most_bytes": most_bytes}
    return await execute(conn, _Q["evict"], params)


async def transcript(
    conn: Connection, lease: Lease, seq: int, data: bytes, *, size: int, sha256: str, most: int
) -> tuple[bool, bool]:
    """Append a part to the transcript of the run.

    Return whether the run still owns its job, and whether the part was stored.
    """
    params: dict[str, Any] = {"job": lease.job, "token": lease.token, "seq": seq, "data": data}
    params |= {"size": size, "sha256": sha256, "most": most}
    owned, stored = (await rows(conn, _Q["transcript"], params))[0]
    return owned, stored


async def show(conn: Connection, lease: Lease, payload: dict[str, Any]) -> int | None:
    """Edit the status messages in chat; return their number, None after a lost lease."""
    params = {
        "job": lease.job,
        "token": lease.token,
        "payload": Jsonb(payload),
        "rest": CARD_INTERVAL,
    }
    return await scalar(conn, _Q["show"], params)  # type: ignore[no-any-return]


async def page(
    conn: Connection, job: int, after: tuple[int, int] = (0, 0), limit: int = 500
) -> Sequence[ActivityRow]:
    """Return the rows of a job after (run, seq)."""
    params = {"job": job, "run": after[0], "seq": after[1], "limit": limit}
    return await fetch_all(conn, _Q["page"], params, ActivityRow)


async def newest(
    conn: Connection, job: int, after: tuple[int, int], limit: int
) -> Sequence[ActivityRow]:
    """Return the newest rows after (run, seq), newest first."""
    params = {"job": job, "run": after[0], "seq": after[1], "limit": limit}
    return await fetch_all(conn, _Q["newest"], params, ActivityRow)
