"""Queues, their pauses, and jobs held back from the claim."""

from __future__ import annotations

from collections.abc import Sequence

from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.queues.queue_models import (
    QueueChange,
    QueuedJob,
    QueuePause,
    QueueSummary,
    UnhandledType,
)

_Q = load("queues")


async def pause(conn: Connection, queue: str, type: str | None, reason: str, actor: str) -> bool:
    """Pause a queue, or a type in it; False when it is already paused."""
    params = {"queue": queue, "type": type, "reason": reason, "actor": actor}
    return bool(await scalar(conn, _Q["pause"], params))


async def resume(conn: Connection, queue: str, type: str | None, actor: str) -> bool:
    """End a pause; False when there is none."""
    params = {"queue": queue, "type": type, "actor": actor}
    return bool(await scalar(conn, _Q["resume"], params))


async def pauses(conn: Connection) -> list[QueuePause]:
    """Return the current pauses."""
    return await fetch_all(conn, _Q["pauses"], None, QueuePause)


async def is_used(conn: Connection, queue: str, type: str | None = None) -> bool:
    """Return whether a queue, or a type in it, has an unfinished job or a history."""
    return bool(await scalar(conn, _Q["is_used"], {"queue": queue, "type": type}))


async def changes(conn: Connection, queue: str | None = None, limit: int = 50) -> list[QueueChange]:
    """Return who paused and resumed a queue, or any queue, newest first."""
    return await fetch_all(conn, _Q["changes"], {"queue": queue, "limit": limit}, QueueChange)


async def move(
    conn: Connection, job: int, place: str, anchor: int | None, actor: str
) -> tuple[str, Status]:
    """Move a queued job; return `moved`, or the failed condition and the status of that job."""
    params = {"job": job, "place": place, "anchor": anchor, "actor": actor}
    ((outcome, status),) = await rows(conn, _Q["move"], params)
    return outcome, Status(status)


async def prioritize(conn: Connection, job: int, priority: int, actor: str) -> tuple[str, Status]:
    """Change the priority of a waiting job; return as `move` does."""
    params = {"job": job, "priority": priority, "actor": actor}
    ((outcome, status),) = await rows(conn, _Q["prioritize"], params)
    return outcome, Status(status)


async def in_order(conn: Connection, limit: int, queue: str | None) -> list[QueuedJob]:
    """Return the jobs that can be claimed, by queue, in the order of the claim."""
    return await fetch_all(conn, _Q["in_order"], {"limit": limit, "queue": queue}, QueuedJob)


async def held_in_order(
    conn: Connection, limit: int = 50, queue: str | None = None
) -> list[QueuedJob]:
    """Return the jobs that wait for a place, their key or a pause, by queue, in its order."""
    return await fetch_all(conn, _Q["held_in_order"], {"limit": limit, "queue": queue}, QueuedJob)


async def hold(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Hold the first jobs of paused types; return their number."""
    return await scalar(conn, _Q["hold"], term.params(limit)) or 0


async def release(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Release held jobs of types that are not paused; return their number."""
    return await scalar(conn, _Q["release"], term.params(limit)) or 0


async def set_by_type(conn: Connection, term: LeaderTerm, lease: float, limit: int) -> int:
    """Let jobs be found by type that many claims would pass; return their number."""
    return await scalar(conn, _Q["set_by_type"], {**term.params(limit), "lease": lease}) or 0


async def leads(conn: Connection, term: LeaderTerm) -> bool:
    """Return whether a leader still has its term."""
    return bool(await scalar(conn, _Q["leads"], {"owner": term.owner, "term": term.term}))


async def set_unhandled_types(
    conn: Connection, term: LeaderTerm, lease: float, failing: Sequence[str], limit: int
) -> int:
    """Store the types that no worker handles; return the number of jobs whose places are free.

    Jobs of the types `failing` keep their places until they fail.
    """
    params = {**term.params(limit), "lease": lease, "failing": list(failing)}
    return await scalar(conn, _Q["set_unhandled_types"], params) or 0


async def unhandled_types(conn: Connection) -> list[tuple[str, str]]:
    """Return queue and type of the jobs that no worker handles, as the leader found them."""
    return [(queue, type) for queue, type in await rows(conn, _Q["unhandled_types"])]


async def waiting_for_types(conn: Connection, lease: float, most: int) -> list[UnhandledType]:
    """Return the types of queues with jobs that wait for a worker that handles them."""
    params = {"lease": lease, "most": most}
    return await fetch_all(conn, _Q["waiting_for_types"], params, UnhandledType)


async def assign(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Give free concurrency keys to waiting jobs; return the number of keys."""
    return await scalar(conn, _Q["assign"], term.params(limit)) or 0


async def queues(conn: Connection, lease: float, most: int) -> list[QueueSummary]:
    """Return the queues in use; at most `most` jobs of each are counted."""
    return await fetch_all(conn, _Q["queues"], {"lease": lease, "most": most}, QueueSummary)


async def claiming(conn: Connection) -> set[str]:
    """Return the open transactions that may have claimed jobs."""
    return set(await scalar(conn, _Q["claiming"]))


async def running(conn: Connection, queue: str, type: str | None) -> list[int]:
    """Return the jobs of a queue, or of a type in it, that a worker has."""
    return [row[0] for row in await rows(conn, _Q["running"], {"queue": queue, "type": type})]
