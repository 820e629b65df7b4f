"""LISTEN and NOTIFY on a dedicated session."""

from __future__ import annotations

from collections.abc import AsyncIterator

from draftsman.store.postgres.database import Connection
from draftsman.store.queries import load

_Q = load("schema")


async def listen(conn: Connection) -> None:
    """Listen for claimable jobs (`draftsman_jobs`) and runs to stop (`draftsman_runs`).

    Also for due deliveries, with the channel as payload (`draftsman_deliveries`).
    """
    await conn.execute(_Q["listen"])


async def receives_notifications(conn: Connection, seconds: float) -> bool:
    """Return whether a notification sent on this connection arrives within `seconds`."""
    await conn.execute(_Q["listen"])
    await conn.execute(_Q["wake"])
    async for _ in conn.notifies(timeout=seconds, stop_after=1):
        return True
    return False


async def notifications(conn: Connection) -> AsyncIterator[tuple[str, str]]:
    """Yield (channel, payload) of each notification."""
    async for notice in conn.notifies():
        yield notice.channel, notice.payload
