"""Workers: who runs jobs, and how they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from draftsman.domain.ids import worker_name
from draftsman_tui.cli import times
from draftsman_tui.cli.health import health_of
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import Facts
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker, and how it is as seen from here."""

    row: Any
    health: str


class Workers(Resource[Seen]):
    """Processes with slots."""

    name = "workers"
    help = "The processes that run jobs, and which of them leads."
    statuses = ("alive", "draining", "silent", "lost")
    fields = ("status", "age")
    empty = "No worker is registered; start one: draftsman up"
    beat = 2.0
    columns = (
        Column[Seen]("WORKER", 9, order=lambda one: worker_name(one.row.id)),
        Column[Seen]("HEALTH", 9, order=lambda one: one.health),
        Column[Seen]("BUSY", 7, right=True, order=lambda one: one.row.busy),
        Column[Seen]("HEARD", 8, right=True, order=lambda one: one.row.silent),
        Column[Seen]("LEADS", 6, order=lambda one: not one.row.leader),
        Column[Seen]("HOST", 0, order=lambda one: one.row.host),
        Column[Seen]("PID", 8, right=True, from_width=110),
        Column[Seen]("QUEUES", 20, most=40, from_width=100),
        Column[Seen]("VERSION", 12, from_width=120),
        Column[Seen]("UP", 6, right=True, order=lambda one: one.row.started_at),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Seen]:
        """Return every worker."""
        found = await rt.inspect.workers()
        return Rows([Seen(one, health_of(one, rt.settings)) for one in found])

    def key(self, row: Seen) -> str:
        """Return its id."""
        return str(row.row.id)

    def cells(self, row: Seen, now: datetime) -> Sequence[Cell]:
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

    def facts(self, row: Seen) -> Facts:
        """Return what a filter looks at."""
        one = row.row
        said = f"{one.id} {one.host} {one.pid} {' '.join(one.queues)} {one.version}"
        return Facts(said, row.health, at=one.started_at)
