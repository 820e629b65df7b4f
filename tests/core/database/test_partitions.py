"""Partitions of events by month, in UTC, in any time zone of the session."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.support.clock import Clock
from tests.support.statements import rows, run, value

pytestmark = pytest.mark.machine_clock("events have the time of the server")

PARTITIONS = """
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid)
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'draftsman.job_events'::regclass
 ORDER BY c.relname"""


async def _partitions(conn: Connection) -> dict[str, str]:
    async with conn.transaction():
        await conn.execute("SET LOCAL timezone = 'UTC'")
        return dict(await rows(conn, PARTITIONS))


async def _months(conn: Connection, ahead: int) -> list[str]:
    now: datetime = await value(conn, "SELECT now() AT TIME ZONE 'UTC'")
    months = [now.year * 12 + now.month - 1 + n for n in range(ahead + 1)]
    return [f"job_events_{month // 12}_{month % 12 + 1:02}" for month in months]


async def test_a_new_database_has_this_month_and_three_ahead(conn: Connection) -> None:
    assert list(await _partitions(conn)) == [*await _months(conn, 3), "job_events_default"]


async def test_partitions_are_created_once(rt: Runtime, conn: Connection) -> None:
    assert await rt.archives.make_partitions(LeaderTerm()) == 0
    assert await value(conn, "SELECT draftsman.make_event_partitions(5)") == 2
    assert await value(conn, "SELECT draftsman.make_event_partitions(5)") == 0


async def test_the_sweep_stays_three_months_ahead(
    rt: Runtime, clock: Clock, conn: Connection
) -> None:
    await clock.forward(62 * 86_400)
    assert await rt.archives.make_partitions(LeaderTerm()) in (2, 3)
    assert await rt.archives.make_partitions(LeaderTerm()) == 0


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Pacific/Kiritimati"])
async def test_bounds_are_months_of_utc_in_every_time_zone(conn: Connection, zone: str) -> None:
    await run(conn, f"SET timezone = '{zone}'")
    await conn.execute("SELECT draftsman.make_event_partitions(26)")
    partitions = await _partitions(conn)
    assert list(partitions) == [*await _months(conn, 26), "job_events_default"]
    for name, bound in partitions.items():
        if name == "job_events_default":
            continue
        year, month = map(int, name.removeprefix("job_events_").split("_"))
        then = f"{year + month // 12}-{month % 12 + 1:02}"
        assert bound == (
            f"FOR VALUES FROM ('{year}-{month:02}-01 00:00:00+00') TO ('{then}-01 00:00:00+00')"
        )


@pytest.mark.parametrize("hours", [-3, 3], ids=["before", "after"])
@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
async def test_the_month_is_that_of_utc_around_its_turn(
    conn: Connection, zone: str, hours: int
) -> None:
    """There it is the other month already, or still."""
    await conn.execute(
        "SELECT set_config('draftsman.clock_offset', (date_trunc('month', now(), 'UTC')"
        " + interval '10 months' + make_interval(hours => %s) - now())::text, false)",
        (hours,),
    )
    utc = "SELECT to_char(draftsman.now() AT TIME ZONE 'UTC', 'YYYY_MM')"
    month = await value(conn, utc)
    await run(conn, f"SET timezone = '{zone}'")
    before = await _partitions(conn)
    assert await value(conn, "SELECT draftsman.make_event_partitions(0)") == 1
    assert (await _partitions(conn)).keys() - before.keys() == {f"job_events_{month}"}


async def test_an_event_is_stored_in_its_month_or_in_the_default_partition(
    conn: Connection,
) -> None:
    insert = (
        "INSERT INTO draftsman.job_events (job, kind, actor, created_at)"
        " VALUES (1, 'k', 'a', now() + make_interval(months => %s))"
        " RETURNING tableoid::regclass::text"
    )
    this = (await _months(conn, 0))[0]
    assert (await value(conn, insert, (0,))).endswith(this)
    assert (await value(conn, insert, (50,))).endswith("job_events_default")


async def test_a_month_with_rows_in_the_default_partition_stays_there(
    conn: Connection, clock: Clock
) -> None:
    await conn.execute(
        "INSERT INTO draftsman.job_events (job, kind, actor, created_at)"
        " VALUES (1, 'k', 'a', now() + interval '6 months')"
    )
    count = await value(conn, "SELECT draftsman.make_event_partitions(8)")
    assert count == 4
    assert await value(conn, "SELECT count(*) FROM draftsman.job_events_default") == 1


async def test_a_leader_without_the_lease_creates_no_partition(
    rt: Runtime, clock: Clock, conn: Connection
) -> None:
    await clock.forward(100 * 86_400)
    assert await rt.archives.make_partitions(LeaderTerm(uuid4(), 1)) == 0


async def test_events_of_a_job_span_partitions(
    make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.running()
    await conn.execute(
        "INSERT INTO draftsman.job_events (job, kind, actor, created_at)"
        " SELECT %s, 'later', 'a', now() + make_interval(months => n)"
        " FROM generate_series(1, 6) n",
        (work.number,),
    )
    kinds = [event.kind for event in await rt.read_model.job_events(work.number)]
    assert kinds == ["job_created", "job_claimed", "job_started"] + ["later"] * 6
