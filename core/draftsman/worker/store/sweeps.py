"""When the leader has something to do."""

from __future__ import annotations

from draftsman.database.database import Connection, scalar
from draftsman.database.named_queries import load

_Q = load("sweeps")


async def next_due(conn: Connection) -> float | None:
    """Return the seconds until something is due; None when nothing is scheduled."""
    return await scalar(conn, _Q["next_due"])  # type: ignore[no-any-return]
