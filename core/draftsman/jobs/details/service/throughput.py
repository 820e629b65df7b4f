"""Throughput of finished jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from draftsman.database.database import Database
from draftsman.jobs.details import store
from draftsman.jobs.details.service.read_model import ReadModel
from draftsman.jobs.details.throughput import Period, Throughput

MAX_EVENTS: Final = 100_000
"""Events of which the figures are computed, the newest: those of about 25,000 jobs."""
MAX_GROUPS: Final = 20
"""Queues, types and repositories of which the figures are returned, of each kind."""


class JobThroughput:
    """Reads the throughput."""

    def __init__(self, db: Database, read_model: ReadModel) -> None:
        self._db = db
        self._read_model = read_model

    async def read(self, period: Period) -> list[Throughput]:
        """Return the throughput of all jobs, then by queue, type and repository, largest first."""
        since = datetime.now(UTC) - timedelta(seconds=period.seconds)
        after = await self._read_model.cursor_before(since)
        async with self._db.connection() as conn:
            return await store.throughput(conn, period, after, MAX_EVENTS, MAX_GROUPS)
