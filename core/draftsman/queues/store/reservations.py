"""Reservations of queues for jobs."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.queues.queue_models import QueueReservation

_Q = load("reservations")


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


async def release(conn: Connection, queue: str, actor: str) -> int | None:
    """End the reservation of a queue; return its job, None when it is not reserved."""
    job = await scalar(conn, _Q["release"], {"queue": queue, "actor": actor})
    return None if job is None else int(job)


async def active(conn: Connection) -> list[QueueReservation]:
    """Return the reservations that have not expired."""
    return await fetch_all(conn, _Q["active"], None, QueueReservation)


async def expire(conn: Connection, term: LeaderTerm, limit: int) -> int:
    """Delete the reservations that have expired; return their number."""
    return await scalar(conn, _Q["expire"], term.params(limit)) or 0
