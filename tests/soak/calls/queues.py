"""Queues and their pauses."""

from __future__ import annotations

from typing import Final

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.queues import store as queues
from tests.soak.calls.call import ALIVE, Call, last_of
from tests.soak.history import ALL, FINISHED


async def _paused_type(conn: Connection) -> None:
    assert await queues.pause(conn, "default", "noop", "soak", "soak")
    assert await queues.pauses(conn)
    await queues.hold_jobs(conn, LeaderTerm(), 100)
    assert await queues.resume(conn, "default", "noop", "soak")
    await queues.release_jobs(conn, LeaderTerm(), 100)
    await queues.assign(conn, LeaderTerm(), 100)
    assert len(await queues.queue_changes(conn, None, 50)) == 2


async def _reorder(conn: Connection) -> None:
    first = last_of("queued")
    second = last_of("queued", 1)
    assert (await queues.prioritize(conn, second, 0, "soak"))[0] == "moved"
    assert (await queues.move(conn, first, "top", None, "soak"))[0] == "moved"


async def _reserve(conn: Connection) -> None:
    job = last_of("queued")
    await queues.reserve(conn, job, 600, "soak")
    await queues.reservations(conn)
    await queues.release_reservation(conn, "default", "soak")
    await queues.expire_reservations(conn, LeaderTerm(), 100)


_RESERVATION: Final = Call(_reserve)
_TYPE: Final = Call(_paused_type)
CALLS: Final[dict[str, Call]] = {
    "queues.pause": _TYPE,
    "queues.resume": _TYPE,
    "queues.pauses": _TYPE,
    "queues.hold_jobs": _TYPE,
    "queues.release_jobs": _TYPE,
    "queues.queue_changes": _TYPE,
    "queues.assign": _TYPE,
    "queues.unhandled_types": Call(queues.unhandled_types),
    "queues.leads": Call(lambda conn: queues.leads(conn, LeaderTerm())),
    "queues.set_by_type": Call(
        lambda conn: queues.set_by_type(conn, LeaderTerm(), ALIVE, 1000), 3000, "a batch of a queue"
    ),
    "queues.set_unhandled_types": Call(
        lambda conn: queues.set_unhandled_types(conn, LeaderTerm(), ALIVE, [], 1000),
        9000,
        "a batch of a queue and of a bucket",
    ),
    "queues.waiting_for_types": Call(
        lambda conn: queues.waiting_for_types(conn, ALIVE, 1000), 9000, "a batch of a queue"
    ),
    "queues.reserve": _RESERVATION,
    "queues.release_reservation": _RESERVATION,
    "queues.reservations": _RESERVATION,
    "queues.expire_reservations": _RESERVATION,
    "queues.move": Call(_reorder, 2 * (ALL - FINISHED), "the unfinished jobs of a queue"),
    "queues.prioritize": Call(_reorder, 2 * (ALL - FINISHED), "the unfinished jobs of a queue"),
    "queues.is_used": Call(
        lambda conn: queues.is_used(conn, "defualt", None),
        2 * (ALL - FINISHED),
        "the unfinished jobs",
    ),
    "queues.in_order": Call(
        lambda conn: queues.in_order(conn, 100, None), 3000, "a page of each queue"
    ),
    "queues.held_in_order": Call(
        lambda conn: queues.held_in_order(conn, 100, None), 3000, "a page of each bucket and key"
    ),
    "queues.queues": Call(
        lambda conn: queues.queues(conn, ALIVE, 1000), 3000, "a thousand jobs of each queue"
    ),
    "queues.claiming": Call(queues.claiming),
    "queues.running": Call(lambda conn: queues.running(conn, "default", None), 2000, "what runs"),
}
