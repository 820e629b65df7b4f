"""Checkpoints, steps, events, artifacts and logs of runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.database.named_queries import load
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.quota import UNLIMITED, Quota, QuotaLimit
from draftsman.jobs.runs.run import Lease
from draftsman.jobs.runs.saved_data import Artifact, CheckpointSummary, LogChunk, Step, StepSummary

_Q = load(__name__)

MAX_CHECKPOINTS = 5
"""Number of newest checkpoints that are kept."""
CHUNK = 1024 * 1024
"""Bytes of an artifact in a row."""


async def checkpoint(
    conn: Connection, lease: Lease, data: dict[str, Any], bundle: int | None
) -> bool:
    """Save a checkpoint and delete the oldest; False after a lost lease."""
    params = {**_lease(lease), "data": Jsonb(data), "bundle": bundle, "keep": MAX_CHECKPOINTS}
    return await scalar(conn, _Q["checkpoint"], params) is not None


async def last_checkpoint(
    conn: Connection, job: int, before_run: int | None = None
) -> tuple[dict[str, Any], int | None] | None:
    """Return the data of the newest checkpoint, maybe of the earlier runs, and its bundle's id."""
    params = {"job": job, "before_run": before_run}
    records = await rows(conn, _Q["last_checkpoint"], params)
    return (records[0][0], records[0][1]) if records else None


async def begin_step(
    conn: Connection, lease: Lease, key: str, invocation: str, owner: Owner = Owner.HANDLER
) -> tuple[bool, Step | None]:
    """Record that the effect is about to happen.

    Return whether the run still owns its job, and the step as it was before this call.
    """
    params = {**_lease(lease), "key": key, "invocation": invocation, "owner": owner}
    owned, status, recorded_invocation, result = (await rows(conn, _Q["begin_step"], params))[0]
    return owned, Step(key, status, recorded_invocation, result, owner) if status else None


async def finish_step(
    conn: Connection, lease: Lease, key: str, result: Any, owner: Owner = Owner.HANDLER
) -> bool:
    """Record the effect's first result; False after a lost lease."""
    params = {**_lease(lease), "key": key, "result": Jsonb(result), "owner": owner}
    return await scalar(conn, _Q["finish_step"], params) is not None


async def steps(conn: Connection, job: int) -> list[Step]:
    """Return the steps of a job, oldest first."""
    return await fetch_all(conn, _Q["steps"], {"job": job}, Step)


async def step_summaries(conn: Connection, job: int, limit: int) -> list[StepSummary]:
    """Return the newest steps of a job, newest first."""
    return await fetch_all(conn, _Q["step_summaries"], {"job": job, "limit": limit}, StepSummary)


async def checkpoint_summaries(conn: Connection, job: int) -> list[CheckpointSummary]:
    """Return the checkpoints of a job that are kept, newest first."""
    params = {"job": job, "limit": MAX_CHECKPOINTS}
    return await fetch_all(conn, _Q["checkpoint_summaries"], params, CheckpointSummary)


async def event(
    conn: Connection,
    lease: Lease,
    kind: str,
    payload: dict[str, Any],
    unless_after: int | None = None,
) -> int | None:
    """Append an event; return its id, None after a lost lease.

    An equal event of the run after `unless_after` is returned instead of a new event.
    """
    params = {**_lease(lease), "kind": kind, "payload": Jsonb(payload), "after": unless_after}
    return await scalar(conn, _Q["event"], params)  # type: ignore[no-any-return]


async def artifact(
    conn: Connection,
    lease: Lease,
    name: str,
    kind: str,
    data: bytes,
    counts: tuple[int, int] | None = None,
) -> int | None:
    """Store a file, replacing an artifact of the same name; None after a lost lease.

    `counts` are the lines that a patch adds and removes.
    """
    size = len(data)
    sha256 = hashlib.sha256(data).hexdigest()
    added, removed = counts or (None, None)
    params = {**_lease(lease), "name": name, "kind": kind, "size": size, "sha256": sha256}
    params |= {"added": added, "removed": removed}
    artifact_id = await scalar(conn, _Q["artifact"], params)
    if artifact_id is None:
        return None
    await execute(conn, _Q["clear_chunks"], {"artifact": artifact_id})
    for seq, start in enumerate(range(0, size, CHUNK)):
        chunk = {"artifact": artifact_id, "seq": seq, "data": data[start : start + CHUNK]}
        await execute(conn, _Q["chunk"], chunk)
    return int(artifact_id)


async def log(
    conn: Connection, lease: Lease, seq: int, text: str, limit: int = UNLIMITED, age: float = 0
) -> tuple[bool, bool]:
    """Append a chunk, which began `age` seconds ago, to the run's log.

    The logs of the job have up to `limit` bytes.

    Return whether the run still owns its job, and whether the chunk was stored.
    """
    params = {**_lease(lease), "seq": seq, "text": text, "limit": limit, "age": age}
    owned, stored = (await rows(conn, _Q["log"], params))[0]
    return owned, stored


async def log_parked(conn: Connection, lease: Lease, text: str) -> None:
    """Append a chunk to the log of the run that parked with this lease."""
    await execute(conn, _Q["log_parked"], {**_lease(lease), "text": text})


async def consume_quota(
    conn: Connection, lease: Lease, quota: Quota, size: int, limit: QuotaLimit
) -> tuple[bool, bool]:
    """Consume one use of so many bytes from a quota of the job.

    Return whether the run still owns its job, and whether the quota allows it.
    """
    params = {**_lease(lease), "quota": quota, "bytes": size}
    params |= {"most": limit.count, "most_bytes": limit.bytes}
    owned, allowed = (await rows(conn, _Q["consume_quota"], params))[0]
    return owned, allowed


async def artifacts(conn: Connection, job: int) -> list[Artifact]:
    """Return the artifacts of a job, without work bundles."""
    return await fetch_all(conn, _Q["artifacts"], {"job": job}, Artifact)


async def find_artifact(conn: Connection, job: int, name: str) -> Artifact | None:
    """Return the newest artifact with this name."""
    return await fetch_one(conn, _Q["find_artifact"], {"job": job, "name": name}, Artifact)


async def find_patch(conn: Connection, job: int, run: int | None = None) -> Artifact | None:
    """Return the patch of a run, or the newest patch of the job."""
    return await fetch_one(conn, _Q["find_patch"], {"job": job, "run": run}, Artifact)


async def content(conn: Connection, artifact: int, most: int | None = None) -> bytes:
    """Return an artifact's bytes, limited to `most` MiB."""
    params = {"artifact": artifact, "most": most}
    return b"".join(row[0] for row in await rows(conn, _Q["chunks"], params))


async def logs(
    conn: Connection, job: int, after: tuple[int, int] = (0, 0), limit: int = 100
) -> Sequence[LogChunk]:
    """Return the chunks of a job's logs after (run, seq)."""
    params = {"job": job, "run": after[0], "seq": after[1], "limit": limit}
    return await fetch_all(conn, _Q["logs"], params, LogChunk)


async def log_end(
    conn: Connection, job: int, after: tuple[int, int], before: tuple[int, int], limit: int
) -> Sequence[LogChunk]:
    """Return the newest chunks between two (run, seq), newest first."""
    params = {"job": job, "run": after[0], "seq": after[1], "limit": limit}
    params |= {"before_run": before[0], "before_seq": before[1]}
    return await fetch_all(conn, _Q["log_end"], params, LogChunk)


async def now(conn: Connection) -> datetime:
    """Return the database's time."""
    return await scalar(conn, _Q["now"])  # type: ignore[no-any-return]


def _lease(lease: Lease) -> dict[str, Any]:
    return {"job": lease.job, "token": lease.token}
