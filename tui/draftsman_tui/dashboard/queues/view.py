"""Queues, their jobs, pauses and reservations."""

from __future__ import annotations

from draftsman.entities.queues import QUEUES, status_of
from draftsman.queues.queue_models import QueueSummary
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource


class QueuesResource(ListedResource[QueueSummary]):
    """Queues in use."""

    number_key = "0"
    statuses = ("open", "paused", "reserved")
    fields = ("status",)
    entity = QUEUES
    needs_worker = True
    poll_interval = 2.0

    def filter_fields(self, row: QueueSummary) -> FilterFields:
        text = " ".join((row.name, *(f"{pause.type or ''} {pause.reason}" for pause in row.pauses)))
        return FilterFields(text, status_of(row))
