"""Published descriptions of job types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from psycopg.types.json import Json, Jsonb

from draftsman.database.database import Connection, execute, fetch_all
from draftsman.database.named_queries import load
from draftsman.job_types.published.description import (
    PublishedType,
    TypeDescription,
    WaitingPayload,
)

_Q = load(__name__)
MAX_TYPES: Final = 5000
"""Maximum number of types read."""


async def publish(conn: Connection, types: Sequence[TypeDescription]) -> None:
    """Store the descriptions that are new, and that a worker serves all of them now."""
    for type in sorted(types, key=lambda type: type.name):  # in an order, against deadlocks
        params = {
            "name": type.name,
            "version": type.version,
            "place": type.place,
            "description": type.description,
            "title": type.title,
            "queue": type.queue,
            "concurrency": type.concurrency,
            "parameters": Json(type.parameters),
            "payload_version": type.payload_version,
            "migrates": type.migrates,
            "limits": Jsonb(type.limits),
            "aliases": list(type.aliases),
            "schedules": Json(list(type.schedules)),
            "app": type.app,
        }
        await execute(conn, _Q["publish"], params)


async def described(
    conn: Connection, lease: float, names: Sequence[str] | None = None
) -> list[PublishedType]:
    """Return the valid description of each type, or of these names and aliases.

    Those that live workers serve are the last; `lease` in seconds.
    """
    params = {"lease": lease, "names": None if names is None else list(names), "limit": MAX_TYPES}
    return await fetch_all(conn, _Q["described"], params, PublishedType)


async def waiting_payloads(
    conn: Connection, type: PublishedType, limit: int
) -> list[WaitingPayload]:
    """Return the payloads of the first jobs of a type that wait."""
    params = {"names": [type.name, *type.aliases], "limit": limit}
    return await fetch_all(conn, _Q["waiting_payloads"], params, WaitingPayload)
