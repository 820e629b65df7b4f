"""Deliveries, newest first."""

from __future__ import annotations

from draftsman.deliveries.delivery import Delivery, DeliveryStatus
from draftsman.entities.deliveries import DELIVERIES
from draftsman.ids import job_name
from draftsman.jobs.details.sections.deliveries import target_text
from draftsman.runtime import Runtime
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import ListedResource, Query, Rows, page


class DeliveriesResource(ListedResource[Delivery]):
    """Messages to channels, with their delivery status."""

    number_key = "5"
    short_name = "deliv"
    help = "Deliveries to channels, newest first."
    entity = DELIVERIES
    statuses = tuple(map(str, DeliveryStatus))
    fields = ("status", "source", "age")
    has_jobs = True
    poll_interval = 2.0

    async def read(self, rt: Runtime, query: Query) -> Rows[Delivery]:
        statuses = [DeliveryStatus(name) for name in query.filter.statuses] or None
        deliveries = await rt.outbox.all(None, statuses, query.limit, query.before)
        return page(deliveries, query.limit, lambda row: row.seq)

    def item(self, row: Delivery) -> tuple[str, str | None]:
        return "deliveries", self.key(row)

    def filter_fields(self, row: Delivery) -> FilterFields:
        text = f"{row.seq} {job_name(row.job)} {row.kind} {target_text(row)} {row.last_error or ''}"
        return FilterFields(text, str(row.status), at=row.created_at, source=str(row.channel))
