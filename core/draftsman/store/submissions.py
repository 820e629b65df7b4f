"""Rows of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from draftsman.domain.job import Status
from draftsman.store.postgres import database
from draftsman.store.postgres.database import Connection
from draftsman.store.queries import load

_Q = load("submissions")
Row = Mapping[str, Any]
DUPLICATE_WINDOW: Final = 100
"""Numbers before and after a job among which one alike is looked for, whatever else comes in."""
_json = json.JSONEncoder(separators=(",", ":"), default=str).encode


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """What became of the request at this place of the batch, counted from 0.

    `how` is created, deduplicated (same type and key) or joined (same subject, live).
    """

    place: int
    number: int
    id: UUID
    status: Status
    request_digest: str
    how: str


@dataclass(frozen=True, slots=True)
class RecentDuplicate:
    """A job that was asked for in the same words, `ago` seconds before now."""

    number: int
    status: Status
    ago: float


async def submit(conn: Connection, rows: Sequence[Row], actor: str) -> list[SubmitResult]:
    """Insert the requests that are new and find the others, in the order of the rows.

    A row that a concurrent twin holds is left out. The rows have the same columns.
    """
    shared = {name: value for name, value in rows[0].items() if _same(name, value, rows)}
    own = [name for name in rows[0] if name not in shared]
    params = {
        "shared": _json(shared),
        "rows": _json([{name: row[name] for name in own} for row in rows]),
        "actor": actor,
    }
    found = await database.rows(conn, _Q["submit"], params)
    made = {id: (number, Status(status)) for number, id, status, _ in found}
    taken = []
    for place, row in enumerate(rows):
        if row["id"] in made:
            number, status = made[row["id"]]
            digest = row["request_digest"]
            taken.append(SubmitResult(place, number, row["id"], status, digest, "created"))
    if len(made) < len(rows):
        missing = [place for place, row in enumerate(rows) if row["id"] not in made]
        taken += await existing(conn, rows, missing)
    return taken


async def existing(
    conn: Connection, rows: Sequence[Row], places: Sequence[int]
) -> list[SubmitResult]:
    """Return the jobs that were there before, of the requests at these places."""
    names = {"types": "type", "keys": "idempotency_key", "subjects": "subject_key"}
    params = {
        param: [rows[place].get(column) for place in places] for param, column in names.items()
    }
    return [
        SubmitResult(
            places[at - 1], number, id, Status(status), digest, "deduplicated" if same else "joined"
        )
        for at, number, id, status, digest, same in await database.rows(
            conn, _Q["existing"], params
        )
    ]


async def join(conn: Connection, requests: Sequence[tuple[int, Row]], actor: str) -> None:
    """Keep each request as an event of the live job that it joined; one that was kept stays one."""
    jobs, wanted = zip(*requests, strict=True)
    params = {"jobs": list(jobs), "requests": [_json(row) for row in wanted], "actor": actor}
    await database.execute(conn, _Q["join"], params)


async def recent_duplicate(
    conn: Connection, job: int, channel: str, target: str, seconds: float
) -> RecentDuplicate | None:
    """Return the newest job that the same person asked for in the same words at this place."""
    params = {
        "job": job,
        "channel": channel,
        "target": target,
        "seconds": seconds,
        "near": DUPLICATE_WINDOW,
    }
    return await database.fetch_one(conn, _Q["recent_duplicate"], params, RecentDuplicate)


def _same(name: str, value: Any, rows: Sequence[Row]) -> bool:
    """Return whether all rows have the value; those that only look equal may be 1 and true."""
    if isinstance(value, dict) and value:
        return False
    return all(row[name] == value for row in rows)
