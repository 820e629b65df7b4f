"""Text rendering of queues: pauses and reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.ids import actor_name, job_name
from draftsman_tui.common import times
from draftsman_tui.common.output import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.domain.read_models import QueueSummary


def blocks_text(summary: QueueSummary, now: datetime | None = None) -> str:
    """Return who reserved a queue until when; and since when, by whom and why it is paused."""
    blocks = []
    if reserved := summary.reservation:
        by, until = actor_name(reserved.actor), times.clock(reserved.expires_at, now)
        blocks.append(f"reserved by {by} for {job_name(reserved.job)} until {until}")
    blocks += [
        (f"{pause.type}: " if pause.type else "")
        + f"{times.ago(pause.paused_at, now)} by {actor_name(pause.paused_by)}:"
        + f" {one_line(pause.reason)}"
        for pause in summary.pauses
    ]
    return "; ".join(blocks)


def hold_text(hold: str) -> str:
    """Return what a held job waits for."""
    return {"paused": "its paused queue", "reserved": "its reserved queue"}.get(
        hold, "its concurrency key"
    )
