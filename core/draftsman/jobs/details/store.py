"""Queries behind the front ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from draftsman.database.database import (
    Connection,
    execute,
    fetch_all,
    fetch_one,
    fetch_record,
    from_record,
    rows,
    scalar,
)
from draftsman.database.named_queries import load
from draftsman.database.server_health import ServerHealth
from draftsman.events.event import PAGE_SIZE, Event
from draftsman.jobs.details.stats import ActivityBucket
from draftsman.jobs.details.throughput import BARS, Period, Throughput, throughput_of
from draftsman.jobs.details.wait_reason import JobFacts
from draftsman.jobs.job import TERMINAL, AgentRequest, Job, RequestSummary, Status
from draftsman.jobs.job_summary import FinishedJob, JobSummary, JobVersion, Replacement, RetryLink
from draftsman.jobs.runs.run import Run

_Q = load(__name__)
EventCursor = tuple[int, int, int]
"""Position in the event feed: epoch, transaction, event."""


async def get(conn: Connection, number: int) -> Job | None:
    """Return a job."""
    return await fetch_one(conn, _Q["get"], {"number": number}, _job)


async def find(conn: Connection, lowest: UUID, highest: UUID) -> list[int]:
    """Return the numbers of at most two jobs whose ids are in the range."""
    return [row[0] for row in await rows(conn, _Q["find"], {"lowest": lowest, "highest": highest})]


async def sources(conn: Connection) -> list[str]:
    """Return the names of the channels, also of those whose packages are removed."""
    return [row[0] for row in await rows(conn, _Q["sources"])]


async def finished(
    conn: Connection, status: Status, filters: dict[str, Any], after: int, limit: int
) -> list[FinishedJob]:
    """Return the jobs that finished with this status, with numbers above `after`, in order."""
    params = filters | {"status": status, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["finished"], params, FinishedJob)


async def newest_values(conn: Connection, field: str, lowest: int) -> list[str]:
    """Return the values that the jobs above this number have in a field, each once."""
    params = {"field": field, "lowest": lowest}
    return [row[0] for row in await rows(conn, _Q["newest_values"], params)]


async def page(conn: Connection, filters: dict[str, Any]) -> list[JobSummary]:
    """Return jobs, newest first, with numbers from `lowest` to below `before`."""
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["page"], filters, _summary)


async def page_of(
    conn: Connection, numbers: Sequence[int], filters: dict[str, Any]
) -> list[JobSummary]:
    """Return those of these jobs that match filters, in the given order."""
    return await fetch_all(conn, _Q["page_of"], filters | {"numbers": list(numbers)}, _summary)


async def by_deadline(conn: Connection, after: int | None, limit: int) -> list[int]:
    """Return the numbers of jobs with open questions, in the order of their deadlines."""
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        found = await rows(conn, _Q["by_deadline"], {"after": after, "limit": limit})
    return [row[0] for row in found]


def _job(**record: Any) -> Job:
    return from_record(Job, {**record, "request": AgentRequest.of_columns(record)})


def _summary(**record: Any) -> JobSummary:
    return from_record(JobSummary, {**record, "request": RequestSummary.of_columns(record)})


async def newest(conn: Connection) -> int:
    """Return the newest job's number, 0 without jobs."""
    return int(await scalar(conn, _Q["newest"]))


async def first_since(conn: Connection, since: datetime) -> int:
    """Return a number below which all jobs are older; a few older jobs may be above it."""
    return int(await scalar(conn, _Q["first_since"], {"since": since}))


async def latest_runs(conn: Connection, before: tuple[int, int], limit: int) -> list[Run]:
    """Return runs of all jobs before (job, ordinal), newest job first."""
    params = {"job": before[0], "ordinal": before[1], "limit": limit}
    return await fetch_all(conn, _Q["latest_runs"], params, Run)


async def job_events(
    conn: Connection, job: int, after: int = 0, limit: int = PAGE_SIZE
) -> list[Event]:
    """Return the events of a job after an event id."""
    params = {"job": job, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["job_events"], params, Event)


async def latest_job_events(conn: Connection, job: int, after: int, limit: int) -> list[Event]:
    """Return the newest events of a job after an id, newest first."""
    params = {"job": job, "after": after, "limit": limit}
    return await fetch_all(conn, _Q["latest_job_events"], params, Event)


async def job_events_of_kinds(
    conn: Connection, job: int, kinds: Sequence[str], limit: int = PAGE_SIZE
) -> list[Event]:
    """Return the newest events of some kinds of a job, newest first."""
    params = {"job": job, "kinds": list(kinds), "limit": limit}
    return await fetch_all(conn, _Q["job_events_of_kinds"], params, Event)


async def events(
    conn: Connection, cursor: EventCursor = (0, 0, 0), limit: int = PAGE_SIZE
) -> list[Event]:
    """Return the events of all jobs after a cursor, in the order of commit-safe transaction ids."""
    params = {"epoch": cursor[0], "txid": cursor[1], "id": cursor[2], "limit": limit}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["events"], params, Event)


async def events_of_kinds(
    conn: Connection, kinds: Sequence[str], cursor: EventCursor, limit: int
) -> list[Event]:
    """Return the events of some kinds after a cursor; none of them is in `COMMON_KINDS`."""
    params: dict[str, Any] = {"epoch": cursor[0], "txid": cursor[1], "id": cursor[2]}
    params |= {"limit": limit, "kinds": list(kinds)}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["events_of_kinds"], params, Event)


async def txid_before(conn: Connection, since: datetime) -> tuple[int, int]:
    """Return the epoch, and a transaction up to which all events are older; 0 if none is."""
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        epoch, txid = (await rows(conn, _Q["txid_before"], {"since": since}))[0]
    return epoch, txid


async def latest_events(conn: Connection, before: EventCursor, limit: int) -> list[Event]:
    """Return the events of all jobs before a cursor, newest first."""
    params = {"epoch": before[0], "txid": before[1], "id": before[2], "limit": limit}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["latest_events"], params, Event)


async def activity(
    conn: Connection, after: EventCursor, before: EventCursor, seconds: int, limit: int
) -> tuple[list[ActivityBucket], EventCursor | None]:
    """Return the activity of the newest events between two cursors, in buckets of `seconds`.

    With more than `limit` events, also the cursor of the next call, to be passed as `before`.
    """
    params = {"epoch": after[0], "txid": after[1], "id": after[2]}
    params |= {"end_epoch": before[0], "end_txid": before[1], "end_id": before[2]}
    bounds = {"seconds": seconds, "limit": limit, "terminal": [str(status) for status in TERMINAL]}
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        records = await rows(conn, _Q["activity"], params | bounds)
    buckets = [ActivityBucket(row[0], row[1], row[2]) for row in records]
    next_cursor = records[0][3:] if records else (None, None, None)
    return buckets, None if next_cursor[0] is None else (
        next_cursor[0],
        next_cursor[1],
        next_cursor[2],
    )


async def throughput(
    conn: Connection, period: Period, after: EventCursor, events: int, groups: int
) -> list[Throughput]:
    """Return the throughput of all jobs, and of each queue, type and repository.

    Of the newest `events` after a cursor; at most `groups` of a kind, with the most finished jobs.
    """
    params: dict[str, Any] = {"epoch": after[0], "txid": after[1], "id": after[2]}
    params |= {"limit": events, "groups": groups, "bars": BARS, "seconds": period.seconds}
    params["terminal"] = [str(status) for status in TERMINAL]
    async with conn.transaction():
        await execute(conn, _Q["in_order"])
        return await fetch_all(conn, _Q["throughput"], params, partial(throughput_of, period))


async def end_cursor(conn: Connection) -> EventCursor:
    """Return the cursor after all current events."""
    epoch, txid = (await rows(conn, _Q["end_cursor"]))[0]
    return epoch, txid, 0


async def version(conn: Connection, job: int) -> JobVersion | None:
    """Return a job's version, which grows with each update, with its status and pause."""
    return await fetch_one(conn, _Q["version"], {"job": job}, JobVersion)


async def ended(conn: Connection, jobs: Sequence[int]) -> list[int]:
    """Return which of these jobs ended, in the order of their ends."""
    return [row[0] for row in await rows(conn, _Q["ended"], {"jobs": list(jobs)})]


async def chain(conn: Connection, job: int) -> list[RetryLink]:
    """Return the retry chain of a job, the request first."""
    return await fetch_all(conn, _Q["chain"], {"job": job}, RetryLink)


async def why(conn: Connection, job: int, lease: float) -> JobFacts | None:
    """Return the data that decides why a job waits."""
    return await fetch_one(conn, _Q["why"], {"job": job, "lease": lease}, JobFacts)


@dataclass(frozen=True, slots=True)
class DetailsRecord:
    """A job with the data that decides why it waits, and the parts that it has."""

    job: Job
    facts: JobFacts
    replacement: Replacement
    parts: JobParts


@dataclass(frozen=True, slots=True)
class JobParts:
    """Which parts a job has, at a time of the database's clock."""

    at: datetime
    spawned_by: int | None
    has_parents: bool
    has_children: bool
    has_group: bool
    has_retry: bool
    has_questions: bool
    has_steps: bool
    has_artifacts: bool
    has_messages: bool
    has_attachments: bool
    has_targets: bool
    has_deliveries: bool
    has_archives: bool
    has_pull_request: bool
    parameters: Sequence[str]
    """The parameters of its type, as its code declares them; none of a type without code."""


async def details(conn: Connection, job: int, lease: float) -> DetailsRecord | None:
    """Return a job, and which parts of it are to be read."""
    record = await fetch_record(conn, _Q["details"], {"job": job, "lease": lease})
    if record is None:
        return None
    return DetailsRecord(
        job=_job(**record),
        facts=from_record(JobFacts, record),
        replacement=from_record(Replacement, record),
        parts=from_record(JobParts, record),
    )


async def counts(conn: Connection, filters: dict[str, Any], most: int) -> dict[str, int]:
    """Return the number of jobs by status, at most `most` of each.

    The filters are those of `page`, without `limit`.
    """
    return {row[0]: row[1] for row in await rows(conn, _Q["counts"], filters | {"most": most})}


async def failure_counts(conn: Connection, most: int) -> dict[str, int]:
    """Return the number of open failures by status, counting up to `most` in all."""
    return dict(await rows(conn, _Q["failure_counts"], {"most": most}))


async def pauses(conn: Connection) -> int:
    """Return the number of paused queues and types."""
    return int(await scalar(conn, _Q["pauses"]))


async def answer_times(conn: Connection) -> tuple[int, float | None]:
    """Return the number of answers in the last day, and their median wait in seconds."""
    record = (await rows(conn, _Q["answer_times"]))[0]
    return record[0], record[1]


async def health(conn: Connection) -> ServerHealth:
    """Return the server's settings."""
    return (await fetch_all(conn, _Q["health"], None, ServerHealth))[0]
