"""Events of a test's database: their bytes, and months of the past."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.runtime import Runtime
from draftsman.settings import Settings
from draftsman.settings.retention import RetentionSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.support.clock import Clock
from tests.support.statements import value

ENDS = [Status.COMPLETED, Status.FAILED, Status.DEAD_LETTER, Status.CANCELED, Status.EXPIRED]
COPY_EVENTS = (
    "COPY (SELECT job, id, run, kind, from_status, to_status, actor, payload, created_at, epoch,"
    " txid FROM draftsman.events ORDER BY epoch, txid, id) TO STDOUT"
)


def over_a_year() -> float:
    """Return the seconds after which this month, but no later month, ended twelve months ago."""
    now = datetime.now(UTC)
    year = now.year + 1 + now.month // 12
    month = now.month % 12 + 1
    return (datetime(year, month, 2, tzinfo=UTC) - now).total_seconds()


def with_retention(settings: Settings, folder: Path, **months: Any) -> Settings:
    """Return a configuration that prunes into a folder."""
    retention = RetentionSettings.model_validate({"archive_dir": folder, **months})
    return settings.model_copy(update={"retention": retention})


async def event_bytes(conn: Connection) -> bytes:
    """Return every event, in the order of the feed."""
    async with conn.cursor().copy(COPY_EVENTS) as copy:
        return b"".join([bytes(part) async for part in copy])


async def this_month(conn: Connection) -> str:
    """Return the current month of events: `2026-01`."""
    month: str = await value(conn, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM')")
    return month


async def partition(conn: Connection) -> str | None:
    """Return the partition of this month; None if it has none."""
    name: str | None = await value(
        conn,
        "SELECT to_regclass('draftsman.job_events_' || replace(%s, '-', '_'))::text",
        [await this_month(conn)],
    )
    return name


async def age_events(make: Factory, clock: Clock) -> list[int]:
    """Create a job of every final status in this month, and move the clock by more than a year.

    Two of them were requested by one statement, whose events are one row.
    """
    requests = [invocation(type="noop", queue="both") for _ in range(2)]
    both = [job.number for job in await make.rt.submissions.submit_many(requests, make.owner)]
    for job in both:
        await make.rt.job_control.cancel(job, make.owner)
    jobs = [await make.job_in(status) for status in ENDS] + both
    await clock.forward(over_a_year())
    return jobs


async def wait_for_feed(rt: Runtime) -> None:
    """Wait until the feed has every event of the database.

    It stays behind the oldest transaction of the server, also in the database of another test.
    """
    async with rt.db.connection() as conn:
        events: int = await value(conn, "SELECT count(*) FROM draftsman.events")

    async def look() -> bool:
        return len(await rt.read_model.events(limit=events)) >= events

    await until(look, "the feed")
