"""`draftsman jobs`: each filter, the newest page, deep pages, and empty pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from draftsman.database.database import Connection
from draftsman.jobs.details.service.read_model import SCAN_LIMIT, ReadModel
from draftsman.jobs.job import Status
from tests.soak.calls.call import MIDDLE, Call

LIVE = [Status.SCHEDULED, Status.QUEUED, Status.RUNNING, Status.RESUMED, Status.RETRYING]
WAIT = [Status.WAITING_FOR_INPUT, Status.WAITING_FOR_APPROVAL]
HOUR = 13 * 300
"""Maximum rows of a rare status: those of an hour, by which clocks may differ."""
DEAD = [Status.DEAD_LETTER]
DONE = [Status.COMPLETED]
FAILED = [Status.FAILED]


class SingleConnection:
    """A pool of a single recorded session."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend the session."""
        yield self._conn


def _page(rows: int = 800, ago: timedelta | None = None, **filters: Any) -> Call:
    """List jobs, as the command does."""

    async def work(conn: Connection) -> object:
        since = datetime.now(UTC) - ago if ago else None
        return await ReadModel(SingleConnection(conn), 300).page(since=since, **filters)  # type: ignore[arg-type]

    return Call(work, rows)


def _counts(rows: int, **filters: Any) -> Call:
    """Count the jobs of a list."""

    async def work(conn: Connection) -> object:
        return await ReadModel(SingleConnection(conn), 300).counts(**filters)  # type: ignore[arg-type]

    return Call(work, rows, "10,000 jobs of a status are counted")


CALLS: Final[dict[str, Call]] = {
    "details.page: newest": _page(),
    "details.page: further on": _page(before=MIDDLE),
    "details.page: the last": _page(before=10),
    "details.page: a thousand": _page(13_000, limit=1000),
    "details.page: completed": _page(statuses=DONE),
    "details.page: completed, further on": _page(statuses=DONE, before=MIDDLE),
    "details.page: dead, further on": _page(statuses=DEAD, before=MIDDLE),
    "details.page: live": _page(statuses=LIVE),
    "details.page_of: failures": _page(6000, failures=True),
    "details.by_deadline: waiting": _page(6000, statuses=WAIT),
    "details.by_deadline: further on": _page(6000, statuses=WAIT, before=MIDDLE),
    "details.page: live, in the past": _page(statuses=LIVE, before=MIDDLE),
    "details.page: an agent": _page(SCAN_LIMIT, agent="agent1"),
    "details.page: no such agent": _page(SCAN_LIMIT + 1000, agent="none"),
    "details.page: a repository": _page(SCAN_LIMIT + 1000, repo="acme/repo7"),
    "details.page: no such repository": _page(SCAN_LIMIT + 1000, repo="none"),
    "details.page: a tag": _page(SCAN_LIMIT, tags=["tag3"]),
    "details.page: no such tag": _page(SCAN_LIMIT + 1000, tags=["none"]),
    "details.page: no such tag, completed": _page(SCAN_LIMIT + 1000, tags=["none"], statuses=DONE),
    "details.page: a type": _page(SCAN_LIMIT + 1000, type="none"),
    "details.page: a queue": _page(SCAN_LIMIT + 1000, queue="none"),
    "details.counts": _counts(200_000),
    "details.counts: completed": _counts(11_000, statuses=DONE),
    "details.counts: of the last day": _counts(50_000, since=datetime.now(UTC) - timedelta(days=1)),
    "details.page: until a day ago": _page(until=datetime.now(UTC) - timedelta(days=1)),
    "submissions.of_idempotency_key: a key": _page(key="key-7"),
    "submissions.of_idempotency_key: no such key": _page(key="none"),
    "details.newest": _page(),
    "details.first_since": _page(ago=timedelta(days=90)),
    "details.page: of the last day": _page(ago=timedelta(days=1)),
    "details.page: of the last second": _page(HOUR, ago=timedelta(seconds=0.1)),
    "details.page: failed of the last day": _page(statuses=FAILED, ago=timedelta(days=1)),
}
