"""Insertion of requests as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from pydantic_core import from_json, to_json

from draftsman.database import database
from draftsman.database.database import Connection
from draftsman.database.named_queries import load
from draftsman.database.pinned_connection import Statement, fetch, statement
from draftsman.deliveries.target import Target
from draftsman.jobs.job import Status
from draftsman.jobs.requests.invocation import RecentDuplicate, SubmitResult

if TYPE_CHECKING:
    from draftsman.jobs.requests.invocation import Unique

_Q = load(__name__)
Row = Mapping[str, Any]
DUPLICATE_WINDOW: Final = 100
"""Job numbers before and after a job among which a duplicate is searched for."""
_NO_COLUMNS: Final = dict.fromkeys(statement(_Q["submit_one"]).names)
"""All parameters of a single request, which may lack columns."""
_NO_ARRAYS: Final = dict.fromkeys(statement(_Q["submit_keyed"]).names)
"""All parameters of a batch, which has an array for each column that its requests do not share."""
_DOCUMENTS: Final = ("payload", "overrides")
_LISTS: Final = ("requested_skills", "tags")
_SEPARATOR: Final = "\0"
"""A character that no text in PostgreSQL has."""
Created = Iterable[tuple[int, int, bool]]
"""Position of a request from 1, number of its job, and whether it is scheduled for later."""


async def submit(
    conn: Connection, rows: Sequence[Row], actor: str, targets: Sequence[Sequence[Target]] = ()
) -> list[SubmitResult]:
    """Insert new requests and find the existing jobs of the others, in the order of the rows.

    A row held by a concurrent duplicate is left out. All rows have the same columns, in the same
    order; a document is an object or its JSON. Of several rows with a subject, the first is
    inserted, and the others join its job. `targets` are those of each row; only new jobs get them.
    """
    await lock_subjects(conn, {row["subject_key"] for row in rows})
    new = _first_of_subjects(rows)
    batch = [rows[index] for index in new] if len(new) < len(rows) else rows
    if any(targets):
        created = await submit_with_targets(conn, batch, actor, [targets[index] for index in new])
    else:
        may_exist = any(row["idempotency_key"] or row["subject_key"] for row in batch)
        created = await _INSERT[len(batch) == 1, may_exist](conn, batch, actor)
    results = []
    for ordinal, number, scheduled in created:
        place = new[ordinal - 1]
        results.append(
            SubmitResult(
                place=place,
                number=number,
                id=rows[place]["id"],
                status=Status.SCHEDULED if scheduled else Status.QUEUED,
                request_digest=rows[place]["request_digest"],
                outcome="created",
            )
        )
    if len(results) < len(rows):
        places = {result.place for result in results}
        missing = [index for index in range(len(rows)) if index not in places]
        results += await existing(conn, rows, missing)
    return results


async def submit_payloads(
    conn: Connection,
    row: Row,
    ids: Sequence[UUID],
    payloads: Sequence[str],
    digests: Sequence[str],
    actor: str,
) -> Created:
    """Insert requests without keys and subjects that share all other columns; payloads are JSON."""
    own = {"id": _ids(ids), "payload": _array(payloads), "request_digest": _array(digests)}
    shared = {name: value for name, value in row.items() if name not in own}
    params = {
        **_NO_ARRAYS,
        **{f"own_{name}": array for name, array in own.items()},
        "actor": actor,
        "shared": _json(shared),
    }
    return await _insert_new(conn, params)


async def submit_plain(conn: Connection, rows: Sequence[Row], actor: str) -> Created:
    """Insert a request without key and subject."""
    return await _submit_single(conn, statement(_Q["submit_plain"]), rows[0], actor)


async def submit_one(conn: Connection, rows: Sequence[Row], actor: str) -> Created:
    """Insert a request; return nothing if its job exists."""
    return await _submit_single(conn, statement(_Q["submit_one"]), rows[0], actor)


async def submit_new(conn: Connection, rows: Sequence[Row], actor: str) -> Created:
    """Insert requests without keys and subjects."""
    return await _insert_new(conn, _columns(rows, actor))


async def _insert_new(conn: Connection, params: Mapping[str, Any]) -> Created:
    ((numbers, scheduled, _),) = await fetch(conn, statement(_Q["submit_new"]), params)
    later = frozenset(scheduled or ())
    return [(ordinal, number, ordinal in later) for ordinal, number in enumerate(numbers, 1)]


async def submit_keyed(conn: Connection, rows: Sequence[Row], actor: str) -> Created:
    """Insert requests; leave out those whose jobs exist."""
    created = await fetch(conn, statement(_Q["submit_keyed"]), _columns(rows, actor))
    return [(ordinal, number, scheduled) for ordinal, number, scheduled, _ in created]


async def submit_with_targets(
    conn: Connection, rows: Sequence[Row], actor: str, targets: Sequence[Sequence[Target]]
) -> Created:
    """Insert requests with the targets of each; leave out those whose jobs exist."""
    records = [
        [{"ordinal": place, **target.as_json()} for place, target in enumerate(of_row, 1)]
        for of_row in targets
    ]
    params = {**_columns(rows, actor), "targets": _json(records)}
    created = await fetch(conn, statement(_Q["submit_with_targets"]), params)
    return [(ordinal, number, scheduled) for ordinal, number, scheduled, _ in created]


_INSERT: Final = {
    (True, False): submit_plain,
    (True, True): submit_one,
    (False, False): submit_new,
    (False, True): submit_keyed,
}
"""Statements by whether the batch is a single request, and whether a job may exist."""


async def _submit_single(conn: Connection, query: Statement, row: Row, actor: str) -> Created:
    params: dict[str, Any] = {**_NO_COLUMNS, **row, "actor": actor}
    for column in _DOCUMENTS:
        params[column] = _document(row[column])
    for column in _LISTS:
        params[column] = _array(row[column])
    created = await fetch(conn, query, params)
    return [(ordinal, number, scheduled) for ordinal, number, scheduled, _ in created]


def _columns(rows: Sequence[Row], actor: str) -> dict[str, Any]:
    """Return the parameters of a batch: a value for each column that is shared, else an array."""
    shared: dict[str, Any] = {}
    params: dict[str, Any] = {**_NO_ARRAYS, "actor": actor}
    columns = zip(*[row.values() for row in rows], strict=True)
    for name, values in zip(rows[0], columns, strict=True):
        if name == "id":
            params["own_id"] = _ids(values)
            continue
        first = values[0]
        if name in _DOCUMENTS:  # 1 and True are equal, but not the same JSON
            if any(value is not first for value in values):
                params[f"own_{name}"] = _array([_document(value) for value in values])
            else:
                shared[name] = from_json(first) if isinstance(first, str) else first
        elif values.count(first) == len(rows):
            shared[name] = first
        else:
            params[f"own_{name}"] = _array([*map(_array, values)] if name in _LISTS else values)
    params["shared"] = _json(shared)
    return params


def _array(values: Sequence[Any]) -> str:
    """Return an array literal."""
    if values and set(map(type, values)) == {str}:
        text = _SEPARATOR.join(values)
        if text.count(_SEPARATOR) == len(values) - 1:
            return "{" + _quoted(text).replace(_SEPARATOR, '","') + "}"
    return f"{{{','.join([_element(value) for value in values])}}}"


def _ids(ids: Sequence[UUID]) -> str:
    return f"{{{','.join([id.hex for id in ids])}}}"


def _element(value: Any) -> str:
    return "NULL" if value is None else _quoted(str(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _document(value: Any) -> str:
    return value if type(value) is str else _json(value)


def _json(value: Any) -> str:
    return to_json(value).decode()


async def postpone_until_commit(conn: Connection) -> None:
    """Let the commit take the locks that workers need: the transaction may stay open for long."""
    await database.execute(conn, _Q["postpone_until_commit"], {})


async def lock_subjects(conn: Connection, subjects: Iterable[str | None]) -> None:
    """Lock subjects and unique keys of requests until the end of the transaction, in order."""
    names = sorted(set(filter(None, subjects)))
    if names:
        await database.execute(conn, _Q["lock_subjects"], {"subjects": names})


def _first_of_subjects(rows: Sequence[Row]) -> list[int]:
    if len(rows) == 1:
        return [0]
    subjects: set[str] = set()
    first = []
    for index, row in enumerate(rows):
        if (subject := row["subject_key"]) is not None:
            if subject in subjects:
                continue
            subjects.add(subject)
        first.append(index)
    return first


async def existing(
    conn: Connection, rows: Sequence[Row], indexes: Sequence[int]
) -> list[SubmitResult]:
    """Return the existing jobs of the requests at these indexes."""
    params = {
        "types": [rows[index]["type"] for index in indexes],
        "keys": [rows[index]["idempotency_key"] for index in indexes],
        "subjects": [rows[index]["subject_key"] for index in indexes],
    }
    return [
        SubmitResult(
            place=indexes[position - 1],
            number=number,
            id=id,
            status=Status(status),
            request_digest=digest,
            outcome="deduplicated" if same else "joined",
        )
        for position, number, id, status, digest, same in await database.rows(
            conn, _Q["existing"], params
        )
    ]


class RepeatedJob(NamedTuple):
    """The job that a request with its unique key repeats."""

    number: int
    id: UUID
    status: Status
    request_digest: str
    debounce_left: float | None
    """Seconds until a debounced job starts in any case."""


async def repeated(conn: Connection, key: str, unique: Unique) -> RepeatedJob | None:
    """Return the newest job that a request with this key repeats."""
    params = {"key": key, "seconds": unique.seconds, "states": unique.considered}
    for number, id, status, digest, left in await database.rows(conn, _Q["repeated"], params):
        return RepeatedJob(number, id, Status(status), digest, left)
    return None


async def keep_unique_key(
    conn: Connection,
    job: int,
    key: str,
    replaces: int | None,
    debounce_limit: float | None = None,
) -> None:
    """Store the unique key of a new job, and the job that it replaces.

    `debounce_limit`, in seconds, is that of a debounced job; a replaced job passes its own on.
    """
    params = {"job": job, "key": key, "replaces": replaces, "debounce_limit": debounce_limit}
    await database.execute(conn, _Q["keep_unique_key"], params)


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
        low = number - DUPLICATE_WINDOW
        high = number + DUPLICATE_WINDOW
        if ranges and low <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((low, high))
    return ranges


async def of_idempotency_key(conn: Connection, key: str, limit: int) -> list[int]:
    """Return the jobs of all types with a key that was given, newest first."""
    params = {"key": key, "limit": limit}
    return [row[0] for row in await database.rows(conn, _Q["of_idempotency_key"], params)]
