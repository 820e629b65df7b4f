"""Queues, their jobs, pauses and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.formats import times
from draftsman.queues.queue_models import QueueSummary
from draftsman_tui.dashboard.tables import cells
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Cell, Column, Query, Resource, Rows, table_view
from draftsman_tui.entities.queues import blocks_text

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class QueuesResource(Resource[QueueSummary]):
    """Queues in use."""

    name = "queues"
    number_key = "0"
    help = "Queues, what waits in them, and which are paused or reserved."
    statuses = ("open", "paused", "reserved")
    fields = ("status",)
    empty = "No queue has jobs or a worker."
    needs_worker = True
    poll_interval = 2.0
    columns = (
        Column[QueueSummary]("QUEUE", 16, most=30, order=lambda queue: queue.name),
        Column[QueueSummary]("STATUS", 8, order=lambda queue: _status(queue) == "open"),
        Column[QueueSummary]("QUEUED", 9, right=True, order=lambda queue: queue.queued),
        Column[QueueSummary]("HELD", 9, right=True, order=lambda queue: queue.held),
        Column[QueueSummary]("RUNNING", 7, right=True, order=lambda queue: queue.running),
        Column[QueueSummary](
            "OLDEST", 7, right=True, order=lambda queue: queue.oldest_wait or 0, largest_first=True
        ),
        Column[QueueSummary]("PAUSED OR RESERVED", 0, optional=True),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[QueueSummary]:
        return Rows(await rt.queues.all())

    def key(self, row: QueueSummary) -> str:
        return row.name

    def cells(self, row: QueueSummary, now: datetime) -> Sequence[Cell]:
        plus = "+" if row.capped else ""
        wait = row.oldest_wait
        status = _status(row)
        return (
            cells.text(row.name, "key"),
            Cell(status, "calm" if status == "open" else "warns"),
            Cell(f"{row.queued:,}{'' if row.pause else plus}"),
            Cell(f"{row.held:,}{plus if row.held else ''}", "warns" if row.held else ""),
            Cell(f"{row.running:,}"),
            Cell("" if wait is None else times.span(wait), "dim"),
            cells.text(blocks_text(row, now)),
        )

    def filter_fields(self, row: QueueSummary) -> FilterFields:
        text = " ".join((row.name, *(f"{pause.type or ''} {pause.reason}" for pause in row.pauses)))
        return FilterFields(text, _status(row))


def _status(queue: QueueSummary) -> str:
    return "paused" if queue.pauses else "reserved" if queue.reservation else "open"
