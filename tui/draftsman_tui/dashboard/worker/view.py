"""Workers and their health."""

from __future__ import annotations

from draftsman.entities.workers import WORKERS, Health, WorkerRow, health_of
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view


@table_view
class WorkersResource(Resource[WorkerRow]):
    """Worker processes."""

    name = "workers"
    number_key = "6"
    short_name = "work"
    help = "Worker processes, their health and the leader."
    statuses = tuple(map(str, Health))
    fields = ("status", "age")
    entity = WORKERS
    needs_worker = True
    poll_interval = 2.0

    async def read(self, rt: Runtime, query: Query) -> Rows[WorkerRow]:
        workers = await rt.read_model.workers()
        return Rows([WorkerRow(worker, health_of(worker, rt.settings)) for worker in workers])

    def key(self, row: WorkerRow) -> str:
        return str(row.worker.id)

    def filter_fields(self, row: WorkerRow) -> FilterFields:
        worker = row.worker
        text = f"{worker.id} {worker.host} {worker.pid} {' '.join(worker.queues)} {worker.version}"
        return FilterFields(text, row.health, at=worker.started_at)
