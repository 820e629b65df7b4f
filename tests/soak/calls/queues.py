"""Queues and their pauses."""

from __future__ import annotations

from typing import Final

from draftsman.domain.run import LeaderTerm
from draftsman.store import queues
from draftsman.store.postgres.database import Connection
from tests.soak.calls.call import Call


async def _paused_type(conn: Connection) -> None:
    assert await queues.pause(conn, "default", "noop", "soak", "soak")
    assert await queues.pauses(conn)
    await queues.hold(conn, LeaderTerm(), 100)
    assert await queues.resume(conn, "default", "noop", "soak")
    await queues.release(conn, LeaderTerm(), 100)
    assert len(await queues.changes(conn, None, 50)) == 2


_TYPE: Final = Call(_paused_type)
CALLS: Final[dict[str, Call]] = {
    "queues.pause": _TYPE,
    "queues.resume": _TYPE,
    "queues.pauses": _TYPE,
    "queues.hold": _TYPE,
    "queues.release": _TYPE,
    "queues.changes": _TYPE,
    "queues.queues": Call(
        lambda conn: queues.queues(conn, 300, 1000), 3000, "a thousand jobs of each queue"
    ),
    "queues.claiming": Call(queues.claiming),
    "queues.running": Call(lambda conn: queues.running(conn, "default", None), 1000, "what runs"),
}
