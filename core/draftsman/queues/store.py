"""Queues with their pauses and reservations, limits, and jobs held back from the claim."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load, load_parts
from draftsman.database.selection import ALL, Selection
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.queues.queue_models import (
    QueueChange,
    QueuedJob,
    QueuePause,
    QueueReservation,
    QueueSummary,
    UnhandledType,
)
from draftsman.queues.usage_limits import LimitChange, LimitUse

_Q = load(__name__)

HOLDS_DUE: Final = load_parts(__name__)["holds_due"]
LIMITS_DUE: Final = load_parts(__name__)["limits_due"]
POSTPONED_DUE: Final = load_parts(__name__)["postponed_due"]
"""Queries of the times when sweeps are due."""


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


async def queue_changes(
    conn: Connection, queue: str | None = None, limit: int = 50
) -> list[QueueChange]:
    """Return who paused and resumed a queue, or any queue, newest first."""
    return await fetch_all(conn, _Q["queue_changes"], {"queue": queue, "limit": limit}, QueueChange)


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


async def hold_jobs(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Hold the first jobs of paused types; return their number."""
    return await scalar(conn, _Q["hold_jobs"], term.params(limit)) or 0


async def release_jobs(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Release held jobs of types that are not paused; return their number."""
    return await scalar(conn, _Q["release_jobs"], term.params(limit)) or 0


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


# Reservations of queues for jobs.


class ReserveOutcome(NamedTuple):
    """The result of a reservation: `reserved`, or the failed condition and its data.

    Conditions are `job` (not queued), `paused` (`by`, `reason`), `held` (`holder` has the
    concurrency key `reason`) and `taken` (`holder`, `by`, `until` of the current reservation).
    """

    outcome: str
    queue: str
    holder: int | None
    by: str | None
    until: datetime | None
    reason: str | None


async def reserve(conn: Connection, job: int, seconds: float, actor: str) -> ReserveOutcome:
    """Reserve the queue of a job that was created in this transaction."""
    params = {"job": job, "seconds": seconds, "actor": actor}
    (row,) = await rows(conn, _Q["reserve"], params)
    return ReserveOutcome(*row)


async def release_reservation(conn: Connection, queue: str, actor: str) -> int | None:
    """End the reservation of a queue; return its job, None when it is not reserved."""
    job = await scalar(conn, _Q["release_reservation"], {"queue": queue, "actor": actor})
    return None if job is None else int(job)


async def reservations(conn: Connection) -> list[QueueReservation]:
    """Return the reservations that have not expired."""
    return await fetch_all(conn, _Q["reservations"], None, QueueReservation)


async def expire_reservations(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Delete the reservations that have expired; return their number."""
    return await scalar(conn, _Q["expire_reservations"], term.params(limit)) or 0


# Limits of concurrency and rates, their use, and the places of jobs.


async def configure_limits(
    conn: Connection, term: LeaderTerm, rules: Sequence[dict[str, Any]]
) -> bool:
    """Replace the limits; False when they are the same, or the term is over."""
    params = {"owner": term.owner, "term": term.term, "limits": json.dumps(rules)}
    return bool(await scalar(conn, _Q["configure_limits"], params))


async def check_limits(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Set changed limits of unfinished jobs; 0 when all of them have been checked."""
    return await scalar(conn, _Q["check_limits"], term.params(limit)) or 0


async def give_places(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Give free places to waiting jobs; return their number."""
    return await scalar(conn, _Q["give_places"], term.params(limit)) or 0


async def limit_changes(conn: Connection, limit: int = 50) -> list[LimitChange]:
    """Return the newest changes of the limits, newest first."""
    return await fetch_all(conn, _Q["limit_changes"], {"limit": limit}, LimitChange)


async def limit_uses(conn: Connection, name: str | None = None) -> list[LimitUse]:
    """Return the use of each limit, or of a bucket."""
    params = {"name": name, "most": COUNT_LIMIT}
    return await fetch_all(conn, _Q["limit_uses"], params, LimitUse)


# Work that transactions left to the leader.


async def do_postponed(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Do postponed work that is due; return the number of buckets, keys and jobs."""
    return await scalar(conn, _Q["do_postponed"], term.params(limit) | selection.params) or 0


async def do_postponed_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the buckets, keys and jobs whose work `do_postponed` would do."""
    params = term.params(limit) | selection.params
    return [id for (id,) in await rows(conn, _Q["do_postponed_candidates"], params)]


async def do_cancels(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection = ALL
) -> int:
    """Cancel jobs of large trees and groups; return their number."""
    return await scalar(conn, _Q["do_cancels"], term.params(limit) | selection.params) or 0


async def do_cancels_candidates(
    conn: Connection, term: LeaderTerm, limit: int, selection: Selection
) -> list[int]:
    """Return the jobs that `do_cancels` would cancel."""
    params = term.params(limit) | selection.params
    return [job for (job,) in await rows(conn, _Q["do_cancels_candidates"], params)]
