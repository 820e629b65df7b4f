"""Workers and their health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from draftsman.entities import cells, shared_columns
from draftsman.entities.cells import Cell
from draftsman.entities.entity import START_WORKER, Column, ListedEntity, Listing
from draftsman.entities.terms import Measure
from draftsman.formats import times
from draftsman.formats.json_data import as_data
from draftsman.ids import worker_name
from draftsman.jobs.status_display import Meaning

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings
    from draftsman.worker.registry.registered_worker import RegisteredWorker


class Health(StrEnum):
    """Health of a worker."""

    ALIVE = "alive"
    DRAINING = "draining"
    SILENT = "silent"
    """Two heartbeats were missed."""
    LOST = "lost"


MEANINGS: Final[Mapping[Health, Meaning]] = {
    Health.ALIVE: Meaning.ACTIVE,
    Health.DRAINING: Meaning.WARNING,
    Health.SILENT: Meaning.WARNING,
    Health.LOST: Meaning.FAILURE,
}


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker and its health."""

    worker: RegisteredWorker
    health: Health


def health_of(worker: RegisteredWorker, settings: Settings) -> Health:
    """Return the health of a worker."""
    if worker.lost:
        return Health.LOST
    if worker.heartbeat_age > 2 * settings.worker.heartbeat + 5:
        return Health.SILENT
    return Health.DRAINING if worker.draining else Health.ALIVE


def _data(row: WorkerRow) -> Any:
    return as_data(row.worker) | {"health": row.health}


async def _read(rt: Runtime, _: int) -> Sequence[WorkerRow]:
    workers = await rt.read_model.workers()
    return [WorkerRow(worker, health_of(worker, rt.settings)) for worker in workers]


WORKERS: Final[ListedEntity[WorkerRow]] = ListedEntity(
    empty="no worker is running",
    hint=START_WORKER,
    data=_data,
    json_class="draftsman.worker.registry.registered_worker:RegisteredWorker",
    json_more={"health": {"enum": [*map(str, Health)]}},
    listing=Listing(
        "workers",
        "Workers and their health.\n\nA worker is lost if its process is gone, or if it sent no"
        " heartbeat for the length of its lease.",
        read=_read,
        key=lambda row: str(row.worker.id),
        section="Processes",
    ),
    columns=(
        Column(
            "WORKER",
            9,
            help="Name of the worker.",
            cell=lambda row, _: Cell(worker_name(row.worker.id), "key"),
            order=lambda row: worker_name(row.worker.id),
        ),
        Column(
            "HEALTH",
            9,
            help="alive, draining (stops after its jobs), silent (two heartbeats missed) or lost.",
            cell=lambda row, _: cells.status_cell(row.health, MEANINGS[row.health]),
            order=lambda row: row.health,
        ),
        Column(
            "BUSY",
            7,
            help="Slots that have a job, of all slots.",
            cell=lambda row, _: Cell(f"{row.worker.busy} of {row.worker.slots}"),
            right=True,
            order=lambda row: row.worker.busy,
            measure=Measure.NUMBER,
        ),
        Column(
            "HEARTBEAT",
            9,
            help="Time since the last heartbeat.",
            cell=lambda row, _: Cell(times.span(row.worker.heartbeat_age)),
            right=True,
            order=lambda row: row.worker.heartbeat_age,
            measure=Measure.TIME,
        ),
        Column(
            "LEADER",
            6,
            help="The worker that sweeps.",
            cell=lambda row, _: Cell("leader" if row.worker.leader else "", "good"),
            order=lambda row: not row.worker.leader,
        ),
        shared_columns.text(
            "HOST", help="Host of the worker.", of=lambda row: row.worker.host, cut=True
        ),
        Column(
            "PID",
            8,
            help="Process id on the host.",
            cell=lambda row, _: Cell(str(row.worker.pid)),
            right=True,
            from_width=110,
        ),
        Column(
            "QUEUES",
            20,
            help="Queues that the worker claims jobs of.",
            cell=lambda row, _: cells.text(", ".join(row.worker.queues)),
            most=40,
            cut=True,
            from_width=100,
        ),
        Column(
            "VERSION",
            12,
            help="Its version.",
            cell=lambda row, _: cells.text(row.worker.version),
            from_width=120,
        ),
        Column(
            "STARTED",
            7,
            help="Time since the start.",
            cell=lambda row, now: cells.age(row.worker.started_at, now),
            right=True,
            order=lambda row: row.worker.started_at,
            measure=Measure.TIME,
        ),
    ),
)
