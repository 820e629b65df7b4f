"""Rows of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from draftsman.domain.job import Status
from draftsman.store.db import Connection, fetch_all
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
    told: str | None


async def submit(conn: Connection, rows: Sequence[dict[str, Any]], actor: str) -> list[Taken]:
    """Insert the requests that are new; a row that a concurrent twin holds is left out."""
    return await fetch_all(conn, _Q["submit"], {"rows": Jsonb(list(rows)), "actor": actor}, Taken)
