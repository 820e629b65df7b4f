"""Queries of metrics: each reads a limited number of rows by an index, and no finished job."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection, fetch_all, rows
from draftsman.database.named_queries import load
from draftsman.database_metrics.gauges import KindCount, ModelUse, StatusCount, WorkerCount
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.jobs.job import TERMINAL, Status

_Q = load(__name__)
UNFINISHED: Final = [status for status in Status if status not in TERMINAL]
LAST: Final = 2**63 - 1
"""The highest number that a row can have."""
NOT_DONE: Final = [DeliveryStatus.PENDING, DeliveryStatus.SENDING, DeliveryStatus.UNCONFIRMED]


async def jobs(conn: Connection, most: int) -> list[StatusCount]:
    """Return the jobs that have not ended, of the first `most` of each status."""
    params = {"statuses": UNFINISHED, "most": most, "last": LAST}
    found = await rows(conn, _Q["jobs"], params)
    return [StatusCount(status, (queue, type), *rest) for status, queue, type, *rest in found]


async def questions(conn: Connection, most: int) -> list[KindCount]:
    """Return the open questions by kind, of the first `most` to expire."""
    return await fetch_all(conn, _Q["questions"], {"most": most}, KindCount)


async def deliveries(conn: Connection, most: int) -> list[StatusCount]:
    """Return the deliveries that are not done, of the first `most` of each status."""
    params = {"statuses": NOT_DONE, "most": most, "last": LAST}
    found = await rows(conn, _Q["deliveries"], params)
    return [StatusCount(status, (channel,), *rest) for channel, status, *rest in found]


async def workers(conn: Connection, lease: float) -> list[WorkerCount]:
    """Return the workers by state; one without a heartbeat for a lease is silent."""
    return await fetch_all(conn, _Q["workers"], {"lease": lease}, WorkerCount)


async def leader(conn: Connection) -> tuple[bool, int]:
    """Return whether a worker is the leader, and the number of the last leader's term."""
    found = await rows(conn, _Q["leader"])
    return (found[0][0], found[0][1]) if found else (False, 0)


async def model_use(conn: Connection, most: int) -> list[ModelUse]:
    """Return the use of models today, of at most `most` repositories, people, agents and models."""
    return await fetch_all(conn, _Q["model_use"], {"most": most}, ModelUse)
