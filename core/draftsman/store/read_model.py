"""Rows that people look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from draftsman.domain.event import Event
from draftsman.domain.job import TERMINAL, Job, Mode, Status
from draftsman.domain.run import Run
from draftsman.domain.wait_reason import JobFacts
from draftsman.store.postgres.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    rows,
    scalar,
)
from draftsman.store.queries import load

_Q = load("read_model")
_INVARIANTS = load("invariants")
EventCursor = tuple[int, int, int]
"""A place in the feed: epoch, transaction, event."""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in a list."""

    number: int
    id: UUID
    type: str
    queue: str
    status: Status
    mode: Mode
    source: str
    agent: str | None
    repo_owner: str | None
    repo_name: str | None
    ticket_title: str | None
    invoker_id: str
    tags: list[str]
    attempts: int
    max_attempts: int
    retry_count: int
    max_retries: int
    run_count: int
    next_retry_at: datetime | None
    run_at: datetime | None
    last_error: str | None
    error_class: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    due_in: float | None = field(compare=False)
    """Seconds until its time comes, by the database's clock; None: it waits for no time."""


@dataclass(frozen=True, slots=True)
class RetryLink:
    """A job of a chain: the request, a retry of it, a retry of that one."""

    number: int
    status: Status
    retry_of: int | None
    chain_length: int
    last_error: str | None
    error_class: str | None = None

    @property
    def name(self) -> str:
        """What people call it: `D-142`."""
        return f"D-{self.number}"


@dataclass(frozen=True, slots=True)
class ActivityBucket:
    """What some seconds brought; `at` is their number since the epoch, by the database's clock."""

    at: int
    ended: int
    """Jobs that came to a terminal status."""
    answers: list[float]
    """For each question that was answered, the seconds that it had waited."""

    def __add__(self, other: ActivityBucket | None) -> ActivityBucket:
        if other is None:
            return self
        return ActivityBucket(self.at, self.ended + other.ended, self.answers + other.answers)


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """What the server says of itself; `clock` is its Unix time in seconds."""

    version: str
    clock: float
    fsync: str
    synchronous_commit: str
    local: bool
    role: str
    kind: str
    """What the session may be: owner, worker, bot, person, reader or none."""


async def get(conn: Connection, number: int) -> Job | None:
    """Return one job."""
    return await fetch_one(conn, _Q["get"], {"number": number}, Job)


async def find(conn: Connection, lowest: UUID, highest: UUID) -> list[int]:
    """Return the numbers of at most two jobs whose ids are in the range."""
    return [row[0] for row in await rows(conn, _Q["find"], {"lowest": lowest, "highest": highest})]


async def page(conn: Connection, filters: dict[str, Any]) -> list[JobSummary]:
    """Return jobs, newest first, with numbers from `lowest` to below `before`."""
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["page"], filters, JobSummary)


async def newest(conn: Connection) -> int:
    """Return the newest job's number, 0 when there is none."""
    return int(await scalar(conn, _Q["newest"]))


async def first_since(conn: Connection, since: datetime) -> int:
    """Return a number below which no job is as new as that; a few that are not may follow it."""
    return int(await scalar(conn, _Q["first_since"], {"since": since}))


async def runs(conn: Connection, job: int) -> list[Run]:
    """Return the runs of a job in their order."""
    return await fetch_all(conn, _Q["runs"], {"job": job}, Run)


async def latest_runs(conn: Connection, before: tuple[int, int], limit: int) -> list[Run]:
    """Return runs of all jobs before (job, ordinal), the newest job's first."""
    params = {"job": before[0], "ordinal": before[1], "limit": limit}
    return await fetch_all(conn, _Q["latest_runs"], params, Run)


async def job_events(conn: Connection, job: int, after: int, limit: int) -> list[Event]:
    """Return one job's events after an id."""
    params = {"job": job, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["job_events"], params, Event)


async def latest_job_events(conn: Connection, job: int, after: int, limit: int) -> list[Event]:
    """Return one job's newest events after an id, newest first."""
    params = {"job": job, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["latest_job_events"], params, Event)


async def events(conn: Connection, cursor: EventCursor, limit: int) -> list[Event]:
    """Return everybody's events after a cursor, in the order of commit-safe transaction ids."""
    params = {"epoch": cursor[0], "txid": cursor[1], "id": cursor[2], "limit": limit}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["events"], params, Event)


async def latest_events(conn: Connection, before: EventCursor, limit: int) -> list[Event]:
    """Return everybody's events before a cursor, the newest first."""
    params = {"epoch": before[0], "txid": before[1], "id": before[2], "limit": limit}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["latest_events"], params, Event)


async def activity(
    conn: Connection, after: EventCursor, before: EventCursor, seconds: int, limit: int
) -> tuple[list[ActivityBucket], EventCursor | None]:
    """Return what the newest events between two cursors tell, in spans of so many seconds.

    Where there were more than `limit`, also the cursor to ask before for the others.
    """
    params = {"epoch": after[0], "txid": after[1], "id": after[2]}
    params |= {"end_epoch": before[0], "end_txid": before[1], "end_id": before[2]}
    bounds = {"seconds": seconds, "limit": limit, "ended": [str(status) for status in TERMINAL]}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        found = await rows(conn, _Q["activity"], params | bounds)
    spans = [ActivityBucket(row[0], row[1], row[2]) for row in found]
    rest = found[0][3:] if found else (None, None, None)
    return spans, None if rest[0] is None else (rest[0], rest[1], rest[2])


async def end_cursor(conn: Connection) -> EventCursor:
    """Return the cursor behind which only new events come."""
    epoch, txid = (await rows(conn, _Q["end_cursor"]))[0]
    return epoch, txid, 0


async def status(conn: Connection, job: int) -> Status | None:
    """Return a job's status."""
    return await scalar(conn, _Q["status"], {"job": job})  # type: ignore[no-any-return]


async def status_and_version(conn: Connection, job: int) -> tuple[Status, int] | None:
    """Return a job's status and version, which grows with each step."""
    found = await rows(conn, _Q["status_and_version"], {"job": job})
    return (found[0][0], found[0][1]) if found else None


async def chain(conn: Connection, job: int) -> list[RetryLink]:
    """Return all jobs of the chain that a job is in, the request first."""
    return await fetch_all(conn, _Q["chain"], {"job": job}, RetryLink)


async def why(conn: Connection, job: int, lease: float) -> JobFacts | None:
    """Return what decides where the job goes next."""
    return await fetch_one(conn, _Q["why"], {"job": job, "lease": lease}, JobFacts)


async def counts(conn: Connection, most: int) -> dict[str, int]:
    """Return how many jobs have each status: a terminal one is counted up to `most`."""
    params = {"most": most, "ended": [str(status) for status in TERMINAL]}
    return {row[0]: row[1] for row in await rows(conn, _Q["counts"], params)}


async def open_counts(conn: Connection) -> tuple[int, int, datetime | None]:
    """Return how many questions are open, how many expire within an hour, and the next expiry."""
    found = (await rows(conn, _Q["open_counts"]))[0]
    return found[0], found[1], found[2]


async def answer_times(conn: Connection) -> tuple[int, float | None]:
    """Return the last day's answers and the median seconds they took."""
    found = (await rows(conn, _Q["answer_times"]))[0]
    return found[0], found[1]


async def health(conn: Connection) -> ServerHealth:
    """Return what the server says of itself."""
    return (await fetch_all(conn, _Q["health"], None, ServerHealth))[0]


async def invariants(conn: Connection) -> dict[str, Sequence[tuple[Any, ...]]]:
    """Return, for each invariant, the (job, how) rows that break it, at most a hundred."""
    async with conn.transaction():
        return {name: await rows(conn, query) for name, query in _INVARIANTS.items()}
