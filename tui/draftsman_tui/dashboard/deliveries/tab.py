"""Deliveries tab."""

from __future__ import annotations

from datetime import datetime

from draftsman.deliveries.delivery import Delivery, DeliveryStatus
from draftsman.formats import times
from draftsman_tui.dashboard.jobs.details.row_layout import (
    Item,
    Row,
    note,
    row_of,
    text_row,
    wrap_row,
)
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab
from draftsman_tui.entities.cells import Cell
from draftsman_tui.entities.deliveries import error_text, status_text, subject_text, target_text
from draftsman_tui.terminal.output import line, styled


def deliveries(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each delivery, newest first."""
    if snapshot.details.deliveries:
        return [
            Item(str(delivery.seq), tuple(_rows(delivery, width, now)))
            for delivery in snapshot.details.deliveries
        ]
    name = snapshot.job.name
    if not snapshot.details.targets:
        empty = f"{name} has no notification targets. To set them: draftsman submit --notify log …"
        return [note(empty, width)]
    targets = ", ".join(f"{target.channel}:{target.target}" for target in snapshot.details.targets)
    return [note(f"{name} has no deliveries yet. Targets: {targets}", width)]


def _rows(delivery: Delivery, width: int, now: datetime) -> list[Row]:
    kind = str(delivery.kind)
    label = f"{kind} {subject_text(delivery)}" if delivery.question else kind
    sent = times.ago(delivery.sent_at or delivery.created_at, now)
    attempts = f"  {delivery.attempts} attempts" if delivery.attempts > 1 else ""
    head = row_of(
        line(
            f"{delivery.seq:>5}  ",
            styled(f"{label:<18}", "bold"),
            f"{target_text(delivery)}  ",
            status_text(delivery),
            styled(f"  {sent}{attempts}", "dim"),
        )
    )
    rows = wrap_row(head, width, 7)
    is_dead = delivery.status is DeliveryStatus.DEAD_LETTER
    if error := error_text(delivery, now):
        lead = Cell(" " * 7)
        rows += wrap_row((lead, *text_row(error, "bad" if is_dead else "dim")), width, 7)
    if is_dead:
        rows.append((Cell("       R: resend", "key"),))
    return rows


declare_tab(
    JobTab(
        "deliveries",
        "Deliveries of a job.",
        deliveries,
        number_key="6",
        short="deliv",
        selectable=True,
        ticks=True,
        has_ids=True,
        count=lambda snapshot: len(snapshot.details.deliveries),
        shows_count=True,
        needs_attention=lambda snapshot: any(
            delivery.status is DeliveryStatus.DEAD_LETTER
            for delivery in snapshot.details.deliveries
        ),
    )
)
