"""Deliveries, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.deliveries.delivery import MEANINGS, Delivery, DeliveryStatus
from draftsman.ids import job_name
from draftsman_tui.dashboard.tables.filter import FilterFields
from draftsman_tui.dashboard.tables.resource import Query, Resource, Rows, page, table_view
from draftsman_tui.entities import cells
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.deliveries import target_text
from draftsman_tui.entities.entity import Column

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


@table_view
class DeliveriesResource(Resource[Delivery]):
    """Messages to channels, with their delivery status."""

    name = "deliveries"
    number_key = "5"
    short_name = "deliv"
    help = "Deliveries to channels, newest first."
    empty = "No deliveries. To send some: draftsman submit --notify log …"
    statuses = tuple(map(str, DeliveryStatus))
    fields = ("status", "source", "age")
    has_jobs = True
    poll_interval = 2.0
    columns = (
        Column[Delivery]("ID", 8, most=8, right=True, order=lambda delivery: delivery.seq),
        Column[Delivery]("JOB", 9, most=9, order=lambda delivery: delivery.job),
        Column[Delivery]("KIND", 9, order=lambda delivery: delivery.kind),
        Column[Delivery]("TARGET", 18, most=40, order=target_text),
        Column[Delivery]("STATUS", 11, order=lambda delivery: delivery.status),
        Column[Delivery](
            "ATTEMPTS", 8, right=True, from_width=90, order=lambda delivery: delivery.attempts
        ),
        Column[Delivery]("AGE", 6, right=True, order=lambda delivery: delivery.created_at),
        Column[Delivery]("ERROR", 0, optional=True),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Delivery]:
        statuses = [DeliveryStatus(name) for name in query.filter.statuses] or None
        deliveries = await rt.outbox.all(None, statuses, query.limit, query.before)
        return page(deliveries, query.limit, lambda row: row.seq)

    def key(self, row: Delivery) -> str:
        return str(row.seq)

    def job(self, row: Delivery) -> int:
        return row.job

    def item(self, row: Delivery) -> tuple[str, str | None]:
        return "deliveries", self.key(row)

    def cells(self, row: Delivery, now: datetime) -> Sequence[Cell]:
        return (
            Cell(self.key(row), "key"),
            Cell(job_name(row.job) + (f"/{row.question}" if row.question else "")),
            Cell(str(row.kind)),
            cells.text(target_text(row)),
            cells.status_cell(row.status, MEANINGS[row.status]),
            Cell(str(row.attempts)),
            cells.age(row.sent_at or row.created_at, now),
            cells.text(
                row.last_error, "bad" if row.status is DeliveryStatus.DEAD_LETTER else "dim"
            ),
        )

    def filter_fields(self, row: Delivery) -> FilterFields:
        text = f"{row.seq} {job_name(row.job)} {row.kind} {target_text(row)} {row.last_error or ''}"
        return FilterFields(text, str(row.status), at=row.created_at, source=str(row.channel))
