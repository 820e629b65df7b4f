"""Events of forges, and the pull requests of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Final

from psycopg.types.json import Jsonb

from draftsman.database.database import Connection, fetch_all, rows
from draftsman.database.named_queries import load
from draftsman.forges.follow_up import TrackedPull
from draftsman.forges.forge_event import ForgeEvent
from draftsman.text import clean

_Q = load("forge_events")
MAX_PULLS: Final = 1000
"""Maximum number of open pull requests of a forge that are read, the newest first."""
MAX_CLOSED: Final = 200
CLOSED_AGE: Final = timedelta(days=30)
"""Time after its end in which a closed pull request is read, to see whether it is open again."""


async def receive(conn: Connection, forge: str, events: Sequence[ForgeEvent]) -> list[int]:
    """Store the events that are not known; return their ids."""
    columns = [clean(asdict(event) | {"at": event.at and event.at.isoformat()}) for event in events]
    params = {"forge": forge, "events": Jsonb(columns)}
    return [int(row[0]) for row in await rows(conn, _Q["receive"], params)]


async def open_pulls(conn: Connection, forge: str) -> list[TrackedPull]:
    """Return the open pull requests of jobs on a forge, the newest first."""
    params = {"forge": forge, "limit": MAX_PULLS}
    return await fetch_all(conn, _Q["open_pulls"], params, TrackedPull)


async def closed_pulls(conn: Connection, forge: str) -> list[TrackedPull]:
    """Return the pull requests of jobs on a forge that were closed in the last 30 days."""
    params = {"forge": forge, "age": CLOSED_AGE, "limit": MAX_CLOSED}
    return await fetch_all(conn, _Q["closed_pulls"], params, TrackedPull)
