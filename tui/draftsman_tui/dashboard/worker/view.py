"""Workers and their health."""

from __future__ import annotations

from draftsman.entities.workers import WORKERS, Health, WorkerRow
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource


class WorkersResource(ListedResource[WorkerRow]):
    """Worker processes."""

    number_key = "6"
    short_name = "work"
    help = "Worker processes, their health and the leader."
    statuses = tuple(map(str, Health))
    fields = ("status", "age")
    entity = WORKERS
    needs_worker = True
    poll_interval = 2.0

    def filter_fields(self, row: WorkerRow) -> FilterFields:
        worker = row.worker
        text = f"{worker.id} {worker.host} {worker.pid} {' '.join(worker.queues)} {worker.version}"
        return FilterFields(text, row.health, at=worker.started_at)
