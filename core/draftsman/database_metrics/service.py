"""Metrics that each process reads from the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from draftsman.database.database import Database
from draftsman.database_metrics import store
from draftsman.database_metrics.gauges import DatabaseState, metrics_text
from draftsman.deliveries.store import deliveries
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.jobs.details import store as details
from draftsman.metrics import RecentMetrics


class DatabaseMetrics:
    """Gauges of queues, questions, deliveries, workers and costs; `lease` is that of workers."""

    def __init__(
        self, db: Database, lease: float, next_due: Callable[[], Awaitable[float | None]]
    ) -> None:
        """`next_due` returns the seconds until a sweep has something to do."""
        self._db = db
        self._worker_lease = lease
        self._next_due = next_due
        self._metrics = RecentMetrics(self._read_metrics)

    async def metrics(self) -> str:
        """Return the gauges for Prometheus, at most 15 seconds old."""
        return await self._metrics.text()

    async def read(self, most: int) -> DatabaseState:
        """Return what the gauges show, counting at most `most` rows of each kind and status."""
        due_in = await self._next_due()
        async with self._db.connection() as conn:
            return DatabaseState(
                most=most,
                jobs=await store.jobs(conn, most),
                failures=await details.failure_counts(conn, most),
                questions=await store.questions(conn, most),
                deliveries=await store.deliveries(conn, most),
                dead_deliveries=await deliveries.dead_letter_count(conn, most),
                workers=await store.workers(conn, self._worker_lease),
                leader=await store.leader(conn),
                due_in=due_in,
                models=await store.model_use(conn, most),
            )

    async def _read_metrics(self) -> str:
        return metrics_text(await self.read(COUNT_LIMIT))
