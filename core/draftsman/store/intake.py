"""Rows of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from draftsman.domain.job import Status
from draftsman.store.db import Connection
from draftsman.store.queries import load

_Q = load("intake")


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the request at this place of the batch, counted from 1.

    `how` is created, deduplicated (same type and key) or joined (same subject, live).
    """

    ordinal: int
    number: int
    id: UUID
    status: Status
    request_digest: str
    how: str


async def submit(conn: Connection, rows: Sequence[dict[str, Any]], actor: str) -> list[Taken]:
    """Insert the requests that are new; a row that a concurrent twin holds is left out."""
    given = [{name: value for name, value in row.items() if value is not None} for row in rows]
    places = {row["id"]: place for place, row in enumerate(rows, 1)}
    async with conn.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(_Q["submit"], {"rows": Jsonb(given), "actor": actor})
        return [
            Taken(ordinal or places[str(id)], number, id, status, digest, how)
            async for ordinal, number, id, status, digest, how, _ in cursor
        ]
