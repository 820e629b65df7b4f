"""Deliveries: what people were told, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.domain.messages.delivery import Delivery, DeliveryStatus
from draftsman_tui.common.delivery_text import target_text
from draftsman_tui.dashboard import cells
from draftsman_tui.dashboard.filter import FilterFields
from draftsman_tui.dashboard.resource import Cell, Column, Query, Resource, Rows, page

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class DeliveriesResource(Resource[Delivery]):
    """The outbox."""

    name = "deliveries"
    help = "What people were told, and what could not be said."
    empty = "Nobody was told anything; to be told: draftsman submit --notify log …"
    statuses = tuple(map(str, DeliveryStatus))
    fields = ("status", "source", "age")
    poll_interval = 2.0
    columns = (
        Column[Delivery]("ID", 8, right=True, order=lambda one: one.seq),
        Column[Delivery]("JOB", 9, order=lambda one: one.job),
        Column[Delivery]("KIND", 9, order=lambda one: one.kind),
        Column[Delivery]("TO", 18, most=40, order=target_text),
        Column[Delivery]("STATUS", 10, order=lambda one: one.status),
        Column[Delivery]("TRIES", 5, right=True, from_width=90, order=lambda one: one.attempts),
        Column[Delivery]("AGE", 6, right=True, order=lambda one: one.created_at),
        Column[Delivery]("ERROR", 0),
    )

    async def read(self, rt: Runtime, query: Query) -> Rows[Delivery]:
        """Return a page; those of a status are found by the database."""
        wanted = [DeliveryStatus(name) for name in query.filter.statuses] or None
        found = await rt.outbox.all(None, wanted, query.limit, query.before)
        return page(found, query.limit, lambda row: row.seq)

    def key(self, row: Delivery) -> str:
        """Return its number, which `draftsman redeliver` takes."""
        return str(row.seq)

    def job(self, row: Delivery) -> int:
        """Return the job that it tells of."""
        return row.job

    def item(self, row: Delivery) -> tuple[str, str | None]:
        """Lead to the delivery."""
        return "deliveries", self.key(row)

    def cells(self, row: Delivery, now: datetime) -> Sequence[Cell]:
        """Return what was said to whom, and how that went."""
        return (
            Cell(self.key(row), "key"),
            Cell(f"D-{row.job}" + (f"/{row.question}" if row.question else "")),
            Cell(str(row.kind)),
            cells.text(target_text(row)),
            cells.status(row.status),
            Cell(str(row.attempts)),
            cells.age(row.sent_at or row.created_at, now),
            cells.text(row.last_error, "bad" if row.status is DeliveryStatus.DEAD else "dim"),
        )

    def filter_fields(self, row: Delivery) -> FilterFields:
        """Return what a filter looks at."""
        said = f"{row.seq} D-{row.job} {row.kind} {target_text(row)} {row.last_error or ''}"
        return FilterFields(said, str(row.status), at=row.created_at, source=str(row.channel))
