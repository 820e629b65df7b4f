"""Events of people on forges: requests and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from psycopg.rows import dict_row

from draftsman.database.database import Connection, rows, scalar
from draftsman.database.named_queries import load
from draftsman.forges.forge_event import EventKind, ForgeEvent, StoredEvent

_Q = load("people_events")
MAX_EVENTS: Final = 100
"""Maximum number of events read at once."""
MAX_QUESTIONS: Final = 500
"""Maximum number of open questions whose issues are read."""
_FIELDS: Final = tuple(field.name for field in fields(ForgeEvent))


async def unprocessed(
    conn: Connection, forges: Sequence[str], paused: Sequence[int] = ()
) -> list[StoredEvent]:
    """Return the oldest requests and answers on these forges that had no effect yet.

    Those that are `paused` are left out, so that they do not hold up the others.
    """
    async with conn.cursor(row_factory=dict_row) as cursor:
        params = {"forges": list(forges), "paused": list(paused), "limit": MAX_EVENTS}
        await cursor.execute(_Q["unprocessed"], params)
        records = await cursor.fetchall()
    return [
        StoredEvent(
            row["id"],
            row["forge"],
            ForgeEvent(**{name: row[name] for name in _FIELDS} | {"kind": EventKind(row["kind"])}),
        )
        for row in records
    ]


async def finish(conn: Connection, id: int, outcome: str) -> bool:
    """Record the outcome of a request or answer; False if it has one."""
    return bool(await scalar(conn, _Q["finish"], {"id": id, "outcome": outcome}))


async def asked_targets(conn: Connection) -> list[str]:
    """Return the issues and pull requests on which questions are open, as targets."""
    params = {"limit": MAX_QUESTIONS}
    return [str(row[0]) for row in await rows(conn, _Q["asked_targets"], params)]
