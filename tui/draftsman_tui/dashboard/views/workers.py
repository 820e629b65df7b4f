"""Workers: who runs jobs, and how they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.domain.ids import worker_name
from draftsman_tui.common import times
from draftsman_tui.common.worker_health import health_of
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import FilterFields
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker, and how it is as seen from here."""

    row: Any
    health: str


class WorkersResource(Resource[WorkerRow]):
    """Processes with slots."""

    name = "workers"
    help = "The processes that run jobs, and which of them leads."
    statuses = ("alive", "draining", "silent", "lost")
    fields = ("status", "age")
    empty = "No worker is registered; start one: draftsman up"
    poll_interval = 2.0
    columns = (
        Column[WorkerRow]("WORKER", 9, order=lambda one: worker_name(one.row.id)),
        Column[WorkerRow]("HEALTH", 9, order=lambda one: one.health),
        Column[WorkerRow]("BUSY", 7, right=True, order=lambda one: one.row.busy),
        Column[WorkerRow]("HEARD", 8, right=True, order=lambda one: one.row.silent),
        Column[WorkerRow]("LEADS", 6, order=lambda one: not one.row.leader),
        Column[WorkerRow]("HOST", 0, order=lambda one: one.row.host),
        Column[WorkerRow]("PID", 8, right=True, from_width=110),
        Column[WorkerRow]("QUEUES", 20, most=40, from_width=100),
        Column[WorkerRow]("VERSION", 12, from_width=120),
        Column[WorkerRow]("UP", 6, right=True, order=lambda one: one.row.started_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[WorkerRow]:
        """Return every worker."""
        found = await rt.read_model.workers()
        return Rows([WorkerRow(one, health_of(one, rt.settings)) for one in found])

    def key(self, row: WorkerRow) -> str:
        """Return its id."""
        return str(row.row.id)

    def cells(self, row: WorkerRow, now: datetime) -> Sequence[Cell]:
        """Return how it is and what it does."""
        one = row.row
        return (
            Cell(worker_name(one.id), "key"),
            cells.status(row.health),
            Cell(f"{one.busy} of {one.slots}"),
            Cell(times.span(one.silent)),
            Cell("leader" if one.leader else "", "good"),
            cells.text(one.host),
            Cell(str(one.pid)),
            cells.text(" ".join(one.queues)),
            cells.text(one.version),
            cells.age(one.started_at, now),
        )

    def filter_fields(self, row: WorkerRow) -> FilterFields:
        """Return what a filter looks at."""
        one = row.row
        said = f"{one.id} {one.host} {one.pid} {' '.join(one.queues)} {one.version}"
        return FilterFields(said, row.health, at=one.started_at)
