"""Insertion of requests as jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from draftsman.domain.job import Status
from draftsman.domain.read_models import RecentDuplicate
from draftsman.store.postgres import database
from draftsman.store.postgres.database import Connection
from draftsman.store.queries import load

_Q = load("submissions")
Row = Mapping[str, Any]
COLUMNS: Final = (
    *("id", "type", "idempotency_key", "request_digest", "queue", "priority", "subject_key"),
    *("mode", "source", "source_type", "external_event_id", "invoker_id", "invoker_display_name"),
    *("repo_owner", "repo_name", "ticket_url", "ticket_title", "ticket_text", "payload"),
    *("overrides", "requested_skills", "tags", "agent", "retry_of", "chain_length", "run_at"),
    *("delay", "max_attempts", "max_retries", "on_lost", "has_targets"),
)
"""The columns of a request."""
DUPLICATE_WINDOW: Final = 100
"""Job numbers before and after a job among which a duplicate is searched for."""
_json = json.JSONEncoder(separators=(",", ":"), default=str).encode


@dataclass(frozen=True, slots=True)
class SubmitResult:
    """The result for the request at index `place` of the batch.

    `outcome` is created, deduplicated (same type and key) or joined (same subject, active).
    """

    place: int
    number: int
    id: UUID
    status: Status
    request_digest: str
    outcome: str


async def submit(conn: Connection, rows: Sequence[Row], actor: str) -> list[SubmitResult]:
    """Insert new requests and find the existing jobs of the others, in the order of the rows.

    A row held by a concurrent duplicate is left out. All rows have the same columns. Of several
    rows with a subject, the first is inserted, and the others join its job.
    """
    await lock_subjects(conn, rows)
    new = _first_of_subjects(rows)
    if len(new) == 1:
        records = await submit_one(conn, new[0], actor)
    else:
        shared = {name: value for name, value in rows[0].items() if _same(name, value, rows)}
        own = [name for name in rows[0] if name not in shared]
        params = {
            "shared": _json(shared),
            "rows": _json([{name: row[name] for name in own} for row in new]),
            "actor": actor,
        }
        records = await database.rows(conn, _Q["submit"], params)
    created = {id: (number, Status(status)) for number, id, status, _ in records}
    results = []
    for index, row in enumerate(rows):
        if row["id"] in created:
            number, status = created[row["id"]]
            digest = row["request_digest"]
            results.append(SubmitResult(index, number, row["id"], status, digest, "created"))
    if len(created) < len(rows):
        missing = [index for index, row in enumerate(rows) if row["id"] not in created]
        results += await existing(conn, rows, missing)
    return results


async def submit_one(conn: Connection, row: Row, actor: str) -> Sequence[tuple[Any, ...]]:
    """Insert a new request."""
    documents = {name: _json(row[name]) for name in ("payload", "overrides")}
    params = {**dict.fromkeys(COLUMNS), **row, **documents, "actor": actor}
    return await database.rows(conn, _Q["submit_one"], params)


async def lock_subjects(conn: Connection, rows: Sequence[Row]) -> None:
    """Lock the subjects of the requests until the end of the transaction."""
    subjects = sorted({row["subject_key"] for row in rows if row["subject_key"] is not None})
    if subjects:
        await database.execute(conn, _Q["lock_subjects"], {"subjects": subjects})


def _first_of_subjects(rows: Sequence[Row]) -> list[Row]:
    subjects: set[str] = set()
    first = []
    for row in rows:
        if (subject := row["subject_key"]) is not None:
            if subject in subjects:
                continue
            subjects.add(subject)
        first.append(row)
    return first


async def existing(
    conn: Connection, rows: Sequence[Row], indexes: Sequence[int]
) -> list[SubmitResult]:
    """Return the existing jobs of the requests at these indexes."""
    names = {"types": "type", "keys": "idempotency_key", "subjects": "subject_key"}
    params = {
        param: [rows[index].get(column) for index in indexes] for param, column in names.items()
    }
    return [
        SubmitResult(
            indexes[position - 1],
            number,
            id,
            Status(status),
            digest,
            "deduplicated" if same else "joined",
        )
        for position, number, id, status, digest, same in await database.rows(
            conn, _Q["existing"], params
        )
    ]


async def join(conn: Connection, requests: Sequence[tuple[int, Row]], actor: str) -> None:
    """Store each request as an event of the active job that it joined, once."""
    jobs, payloads = zip(*requests, strict=True)
    params = {"jobs": list(jobs), "requests": [_json(row) for row in payloads], "actor": actor}
    await database.execute(conn, _Q["join"], params)


async def recent_duplicates(
    conn: Connection, jobs: Sequence[tuple[int, str, str]], seconds: float
) -> dict[int, RecentDuplicate]:
    """Return by job the newest job with its invoker, text and target; `jobs` have their targets."""
    numbers, channels, targets = zip(*jobs, strict=True)
    lows, highs = zip(*_ranges(sorted(numbers)), strict=True)
    params = {
        "jobs": list(numbers),
        "channels": list(channels),
        "targets": list(targets),
        "lows": list(lows),
        "highs": list(highs),
        "seconds": seconds,
        "near": DUPLICATE_WINDOW,
    }
    return {
        job: RecentDuplicate(number, Status(status), age)
        for job, number, status, age in await database.rows(conn, _Q["recent_duplicates"], params)
    }


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return ranges, without overlaps, of the numbers near to any of these sorted numbers."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        low, high = number - DUPLICATE_WINDOW, number + DUPLICATE_WINDOW
        if ranges and low <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return ranges


def _same(name: str, value: Any, rows: Sequence[Row]) -> bool:
    """Return whether all rows have the value; a dict may only look equal (1 and true)."""
    if isinstance(value, dict) and value:
        return False
    return all(row[name] == value for row in rows)
