"""Deliveries tab."""

from __future__ import annotations

from datetime import datetime

from draftsman.deliveries.delivery import Delivery, DeliveryStatus
from draftsman_tui.dashboard.jobs.details.row_layout import (
    Item,
    Row,
    note,
    row_of,
    text_row,
    wrap_row,
)
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.tables.resource import Cell
from draftsman_tui.entities.deliveries import delivery_cells
from draftsman_tui.terminal.output import line, styled


def deliveries(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each delivery, newest first."""
    if snapshot.deliveries:
        return [
            Item(str(delivery.seq), tuple(_rows(delivery, width, now)))
            for delivery in snapshot.deliveries
        ]
    name = snapshot.job.name
    if not snapshot.targets:
        empty = f"{name} has no notification targets. To set them: draftsman submit --notify log …"
        return [note(empty, width)]
    targets = ", ".join(f"{target.channel}:{target.target}" for target in snapshot.targets)
    return [note(f"{name} has no deliveries yet. Targets: {targets}", width)]


def _rows(delivery: Delivery, width: int, now: datetime) -> list[Row]:
    seq, job, kind, target, status, tries, when, error = delivery_cells(delivery, now)
    label = f"{kind} {job}" if delivery.question else str(kind)
    attempts = f"  {tries} attempts" if delivery.attempts > 1 else ""
    head = row_of(
        line(
            f"{seq!s:>5}  ",
            styled(f"{label:<18}", "bold"),
            f"{target}  ",
            status if not isinstance(status, str) else styled(status),
            styled(f"  {when}{attempts}", "dim"),
        )
    )
    rows = wrap_row(head, width, 7)
    is_dead = delivery.status is DeliveryStatus.DEAD_LETTER
    if error:
        lead = Cell(" " * 7)
        rows += wrap_row((lead, *text_row(str(error), "bad" if is_dead else "dim")), width, 7)
    if is_dead:
        rows.append((Cell("       R: resend", "key"),))
    return rows
