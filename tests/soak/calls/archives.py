"""Months of events that are archived and restored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from draftsman.database.database import Connection
from draftsman.events import store as archives
from draftsman.jobs.runs.run import LeaderTerm
from tests.soak.calls.call import MIDDLE, NEWEST, OLDEST, Call
from tests.soak.history import ARCHIVED, DAYS, WORKER

HAND = LeaderTerm()
LEADER = LeaderTerm(WORKER, 1)
MONTH = (datetime.now(UTC) - timedelta(days=DAYS - 1)).date().replace(day=1)
"""The oldest month with events."""
AWAY = ARCHIVED
NEVER = date(2100, 1, 1)
"""An archived month, and a month without events."""
WHOLE = "it moves or counts one month; by hand, or once a month, under a timeout of its own"
LINES = 100
SMALL = 1500
"""Number of rows of 200 jobs and their logs."""


async def _copy_out(conn: Connection) -> int:
    return sum([len(line) async for line in archives.copy_out(conn, MONTH)])


async def _lines() -> AsyncIterator[bytes]:
    for n in range(LINES):
        line = f"{NEWEST}\t{10**12 + n}\t\\N\tsaid\t\\N\t\\N\tseed\t{{}}\t{MONTH} 00:00+00\t1\t3\n"
        yield line.encode()


async def _drop(conn: Connection, term: LeaderTerm) -> object:
    return await archives.drop(conn, term, MONTH, sha256="0", host="h", path="/p")


def _prune_logs(months: int, term: LeaderTerm = LEADER) -> Call:
    return Call(lambda conn: archives.prune_logs(conn, term, months, 200), SMALL)


CALLS: Final[dict[str, Call]] = {
    "events.begin": Call(lambda conn: archives.begin(conn, lock="1s", statement="1h")),
    "events.due: two months": Call(lambda conn: archives.due(conn, LEADER, 4)),
    "events.due: by hand, none": Call(lambda conn: archives.due(conn, HAND, 12)),
    "events.default_partition_months": Call(
        lambda conn: archives.default_partition_months(conn, 12)
    ),
    "events.count": Call(lambda conn: archives.count(conn, MONTH), why=WHOLE, everything=True),
    "events.count: of none": Call(lambda conn: archives.count(conn, NEVER)),
    "events.holders": Call(
        lambda conn: archives.holders(conn, MONTH, 12, 5), why=WHOLE, everything=True
    ),
    "events.lock_month": Call(lambda conn: archives.lock_month(conn, MONTH)),
    "events.lock_month: one that left": Call(lambda conn: archives.lock_month(conn, AWAY)),
    "events.copy_out": Call(_copy_out, why=WHOLE, everything=True),
    "events.drop": Call(lambda conn: _drop(conn, HAND), why=WHOLE, everything=True),
    "events.drop: not leading": Call(lambda conn: _drop(conn, LeaderTerm(WORKER, 2))),
    "events.make_partition": Call(lambda conn: archives.make_partition(conn, NEVER)),
    "events.make_partition: there": Call(lambda conn: archives.make_partition(conn, MONTH)),
    "events.copy_in": Call(lambda conn: archives.copy_in(conn, _lines())),
    "events.forget": Call(lambda conn: archives.forget(conn, AWAY), why=WHOLE, everything=True),
    "events.forget: none": Call(lambda conn: archives.forget(conn, NEVER)),
    "events.archives": Call(archives.archives),
    "events.of_job: of one that left": Call(lambda conn: archives.of_job(conn, OLDEST)),
    "events.of_job: of none": Call(lambda conn: archives.of_job(conn, MIDDLE)),
    "events.prune_activity": Call(
        lambda conn: archives.prune_activity(conn, LEADER, 3, 200), SMALL
    ),
    "events.prune_logs: two hundred jobs": _prune_logs(3),
    "events.prune_logs: by hand": _prune_logs(3, HAND),
    "events.prune_logs: none is old": _prune_logs(12),
}
