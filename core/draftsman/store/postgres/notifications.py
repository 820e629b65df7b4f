"""LISTEN, which needs a session connection of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

from draftsman.store.postgres.database import Connection
from draftsman.store.queries import load

_Q = load("schema")


async def listen(conn: Connection) -> None:
    """Hear of claimable jobs (`draftsman_jobs`) and of runs to stop (`draftsman_runs`).

    And of what is due to be sent: `draftsman_deliveries`, with the channel.
    """
    await conn.execute(_Q["listen"])


async def receives_notifications(conn: Connection, seconds: float) -> bool:
    """Return whether a notification sent on this connection comes back on it in so many seconds."""
    await conn.execute(_Q["listen"])
    await conn.execute(_Q["wake"])
    async for _ in conn.notifies(timeout=seconds, stop_after=1):
        return True
    return False


async def notifications(conn: Connection) -> AsyncIterator[tuple[str, str]]:
    """Yield (channel, payload) as they come."""
    async for notice in conn.notifies():
        yield notice.channel, notice.payload
