"""Views of questions, and the figures of people's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from draftsman.attention.figures import AttentionFigures, FigureGroup, Interruption
from draftsman.database.database import Connection, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.people.actor import Actor

_Q = load("figures")


async def record_views(conn: Connection, refs: Sequence[tuple[int, int]], actor: Actor) -> int:
    """Record the first view of these open questions; return the number of new views."""
    params = {
        "jobs": [job for job, _ in refs],
        "questions": [ordinal for _, ordinal in refs],
        "source": actor.channel,
        "actor_id": actor.id,
        "person": actor.voter,
    }
    return int(await scalar(conn, _Q["record_views"], params))


async def figures(conn: Connection, seconds: float, limit: int) -> list[AttentionFigures]:
    """Return the figures of the newest questions, without pings in quiet hours."""
    params = {"seconds": seconds, "limit": limit}
    rows = await fetch_all(conn, _Q["figures"], params, AttentionFigures)
    return [replace(row, by=FigureGroup(row.by)) for row in rows]


async def interruptions(conn: Connection, seconds: float, limit: int) -> list[Interruption]:
    """Return the interruptions of people by these questions."""
    params = {"seconds": seconds, "limit": limit}
    return await fetch_all(conn, _Q["interruptions"], params, Interruption)
