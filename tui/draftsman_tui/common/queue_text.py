"""Text rendering of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.ids import actor_name
from draftsman.domain.usage_limits import PAUSE, bucket_title
from draftsman_tui.common import times
from draftsman_tui.common.output import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.domain.read_models import JobSummary, QueueSummary


def state_text(summary: QueueSummary, now: datetime | None = None) -> str:
    """Return why a queue and its types are paused, and how many jobs wait for places of limits."""
    pauses = [
        (f"{pause.type}: " if pause.type else "")
        + f"{times.ago(pause.paused_at, now)} by {actor_name(pause.paused_by)}:"
        + f" {one_line(pause.reason)}"
        for pause in summary.pauses
    ]
    limited = [f"{summary.limited:,} wait for limits"] if summary.limited else []
    return "; ".join(pauses + limited)


def hold_text(job: JobSummary) -> str:
    """Return what a queued job waits for that no claim may take."""
    if job.hold == "key":
        return "its concurrency key"
    if job.hold == "limit" and job.held_by != PAUSE:
        return f"a place: {bucket_title(job.held_by or '')}"
    return "its paused queue"
