"""Topics of places where people answer, and changes of answers."""

from __future__ import annotations

from typing import Any, Final

from psycopg.types.json import Jsonb

from draftsman.database.database import Connection, fetch_all, scalar
from draftsman.database.named_queries import load
from draftsman.deliveries.thread import PlaceTopic

_Q = load(__name__)
MAX_JOBS: Final = 20
"""Maximum number of jobs read for a place."""


async def place(conn: Connection, channel: str, target: str) -> list[PlaceTopic]:
    """Return the jobs that post to a place, with the questions asked there, newest first."""
    params = {"channel": channel, "target": target, "limit": MAX_JOBS}
    return await fetch_all(conn, _Q["place"], params, PlaceTopic)


async def is_own_message(conn: Connection, channel: str, ref: str) -> bool:
    """Return whether draftsman wrote the message with this reference."""
    return bool(await scalar(conn, _Q["is_own_message"], {"channel": channel, "ref": ref}))


async def record_answer_change(
    conn: Connection,
    job: int,
    question: int,
    event: str,
    kind: str,
    actor: str,
    detail: dict[str, Any],
) -> bool:
    """Record a change of an accepted answer; False where there is none, or it is recorded."""
    params = {
        "job": job,
        "question": question,
        "event": event,
        "kind": kind,
        "actor": actor,
        "detail": Jsonb(detail),
    }
    return bool(await scalar(conn, _Q["record_answer_change"], params))
