"""Deliveries tab."""

from __future__ import annotations

from datetime import datetime

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman_tui.dashboard.jobs.details.row_layout import Item, note
from draftsman_tui.dashboard.jobs.details.section_items import section_items
from draftsman_tui.dashboard.jobs.details.snapshot import JobSnapshot
from draftsman_tui.dashboard.jobs.details.tab import JobTab, declare_tab


def deliveries(snapshot: JobSnapshot, width: int, now: datetime) -> list[Item]:
    """Return an item for each delivery, newest first, and the counts of each target."""
    dead = {
        str(delivery.seq)
        for delivery in snapshot.details.deliveries
        if delivery.status is DeliveryStatus.DEAD_LETTER
    }
    items = section_items(
        snapshot,
        width,
        now,
        "deliveries",
        titled=False,
        hint=lambda seq: "R: resend" if seq in dead else "",
    )
    name = snapshot.job.name
    empty = f"{name} has no notification targets. To set them: draftsman submit --notify log …"
    return items or [note(empty, width)]


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
