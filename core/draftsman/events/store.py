"""Archived months of events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from draftsman.database.database import Connection, execute, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.events.archive import Archive, JobArchive
from draftsman.jobs.runs.run import LeaderTerm

_Q = load(__name__)


@dataclass(frozen=True, slots=True)
class MonthHolder:
    """A job that holds a month; `of` is the number of all holders."""

    job: int
    status: str
    of: int


async def begin(conn: Connection, *, lock: str, statement: str) -> bool:
    """Set the transaction's limits; False while another transaction prunes or restores."""
    result = await rows(conn, _Q["begin"], {"lock": lock, "statement": statement})
    return bool(result[0][-1])


async def due(conn: Connection, term: LeaderTerm, months: int) -> list[date]:
    """Return the first days of the months older than the retention, oldest first."""
    params = {**term.params(0), "months": months}
    return [row[0] for row in await rows(conn, _Q["due"], params)]


async def default_partition_months(conn: Connection, months: int) -> list[tuple[date, int]]:
    """Return the expired months in the default partition, with their number of events."""
    return [
        (row[0], row[1])
        for row in await rows(conn, _Q["default_partition_months"], {"months": months})
    ]


async def count(conn: Connection, month: date) -> int:
    """Return the number of events of a month."""
    return int(await scalar(conn, _Q["count"], _range(month)))


async def holders(conn: Connection, month: date, months: int, limit: int) -> list[MonthHolder]:
    """Return the first jobs that hold a month."""
    params = {**_range(month), "months": months, "limit": limit}
    return await fetch_all(conn, _Q["holders"], params, MonthHolder)


async def lock_month(conn: Connection, month: date) -> bool:
    """Lock a month against writers for this transaction; False when it was pruned."""
    return bool(await scalar(conn, _Q["lock_month"], {"month": month}))


async def copy_out(conn: Connection, month: date) -> AsyncIterator[bytes]:
    """Yield a month's events as lines of COPY, in commit order."""
    async with conn.cursor() as cursor, cursor.copy(_Q["copy_out"], _range(month)) as copy:
        async for line in copy:
            yield bytes(line)


async def drop(
    conn: Connection, term: LeaderTerm, month: date, *, sha256: str, host: str, path: str
) -> int | None:
    """Record the archive and drop the partition; return its events, None without the lease."""
    params = {**term.params(0), "month": month, "sha256": sha256, "host": host, "path": path}
    return await scalar(conn, _Q["drop"], params)  # type: ignore[no-any-return]


async def make_partition(conn: Connection, month: date) -> bool:
    """Create the partition of a month; False when it exists."""
    return bool(await scalar(conn, _Q["make_partition"], {"month": month}))


async def copy_in(conn: Connection, blocks: AsyncIterator[bytes]) -> int:
    """Insert lines of COPY into the events; return the number of rows."""
    async with conn.cursor() as cursor:
        async with cursor.copy(_Q["copy_in"]) as copy:
            async for block in blocks:
                await copy.write(block)
        return cursor.rowcount


async def forget(conn: Connection, month: date) -> None:
    """Delete the record of an archive whose events were restored."""
    await execute(conn, _Q["forget"], {"month": month})


async def archives(conn: Connection) -> list[Archive]:
    """Return the archived months, oldest first."""
    return await fetch_all(conn, _Q["archives"], None, Archive)


async def of_job(conn: Connection, job: int) -> Sequence[JobArchive]:
    """Return the archived months with events of a job."""
    return await fetch_all(conn, _Q["of_job"], {"job": job}, JobArchive)


async def prune_logs(conn: Connection, term: LeaderTerm, months: int, limit: int) -> int:
    """Delete the logs of at most `limit` expired jobs; return the number of chunks."""
    return await execute(conn, _Q["prune_logs"], {**term.params(limit), "months": months})


async def prune_activity(conn: Connection, term: LeaderTerm, months: int, limit: int) -> int:
    """Delete the activity of at most `limit` expired jobs; return the number of rows."""
    return await execute(conn, _Q["prune_activity"], {**term.params(limit), "months": months})


def _range(month: date) -> dict[str, Any]:
    first = datetime(month.year, month.month, 1, tzinfo=UTC)
    after = datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)
    return {"first": first, "after": after}


async def partitions(conn: Connection, term: LeaderTerm, ahead: int) -> int:
    """Create the event partitions of the coming months; return their number."""
    return await scalar(conn, _Q["partitions"], {**term.params(0), "ahead": ahead}) or 0
