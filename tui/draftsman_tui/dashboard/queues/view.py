"""Queues, their jobs, pauses and reservations."""

from __future__ import annotations

from draftsman.entities.queues import QUEUES, status_of
from draftsman.queues.queue_models import QueueSummary
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, table_view


@table_view
class QueuesResource(Resource[QueueSummary]):
    """Queues in use."""

    name = "queues"
    number_key = "0"
    help = "Queues, what waits in them, and which are paused or reserved."
    statuses = ("open", "paused", "reserved")
    fields = ("status",)
    entity = QUEUES
    needs_worker = True
    poll_interval = 2.0

    async def read(self, rt: Runtime, query: Query) -> Rows[QueueSummary]:
        return Rows(await rt.queues.all())

    def key(self, row: QueueSummary) -> str:
        return row.name

    def filter_fields(self, row: QueueSummary) -> FilterFields:
        text = " ".join((row.name, *(f"{pause.type or ''} {pause.reason}" for pause in row.pauses)))
        return FilterFields(text, status_of(row))
