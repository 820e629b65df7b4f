"""Workers and their health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.formats import times
from draftsman.ids import worker_name
from draftsman_tui.dashboard.tables import cells
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Cell, Column, Query, Resource, Rows, table_view
from draftsman_tui.entities.workers import HEALTH_MEANINGS, health_of

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker and its health."""

    row: Any
    health: str


@table_view
class WorkersResource(Resource[WorkerRow]):
    """Worker processes."""

    name = "workers"
    number_key = "6"
    short_name = "work"
    help = "Worker processes, their health and the leader."
    statuses = ("alive", "draining", "silent", "lost")
    fields = ("status", "age")
    empty = "No workers."
    needs_worker = True
    poll_interval = 2.0
    columns = (
        Column[WorkerRow]("WORKER", 9, order=lambda worker: worker_name(worker.row.id)),
        Column[WorkerRow]("HEALTH", 9, order=lambda worker: worker.health),
        Column[WorkerRow]("BUSY", 7, right=True, order=lambda worker: worker.row.busy),
        Column[WorkerRow](
            "HEARTBEAT", 9, right=True, order=lambda worker: worker.row.heartbeat_age
        ),
        Column[WorkerRow]("LEADER", 6, order=lambda worker: not worker.row.leader),
        Column[WorkerRow]("HOST", 0, order=lambda worker: worker.row.host),
        Column[WorkerRow]("PID", 8, right=True, from_width=110),
        Column[WorkerRow]("QUEUES", 20, most=40, from_width=100),
        Column[WorkerRow]("VERSION", 12, from_width=120),
        Column[WorkerRow]("STARTED", 7, right=True, order=lambda worker: worker.row.started_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[WorkerRow]:
        workers = await rt.read_model.workers()
        return Rows([WorkerRow(worker, health_of(worker, rt.settings)) for worker in workers])

    def key(self, row: WorkerRow) -> str:
        return str(row.row.id)

    def cells(self, row: WorkerRow, now: datetime) -> Sequence[Cell]:
        worker = row.row
        return (
            Cell(worker_name(worker.id), "key"),
            cells.status_cell(row.health, HEALTH_MEANINGS[row.health]),
            Cell(f"{worker.busy} of {worker.slots}"),
            Cell(times.span(worker.heartbeat_age)),
            Cell("leader" if worker.leader else "", "good"),
            cells.text(worker.host),
            Cell(str(worker.pid)),
            cells.text(", ".join(worker.queues)),
            cells.text(worker.version),
            cells.age(worker.started_at, now),
        )

    def filter_fields(self, row: WorkerRow) -> FilterFields:
        worker = row.row
        text = f"{worker.id} {worker.host} {worker.pid} {' '.join(worker.queues)} {worker.version}"
        return FilterFields(text, row.health, at=worker.started_at)
