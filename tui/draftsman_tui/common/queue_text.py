"""Text rendering of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.domain.ids import actor_name
from draftsman_tui.common import times
from draftsman_tui.common.output import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from draftsman.domain.read_models import QueueSummary


def pauses_text(summary: QueueSummary, now: datetime | None = None) -> str:
    """Return since when, by whom and why a queue and its types are paused."""
    return "; ".join(
        (f"{pause.type}: " if pause.type else "")
        + f"{times.ago(pause.paused_at, now)} by {actor_name(pause.paused_by)}:"
        + f" {one_line(pause.reason)}"
        for pause in summary.pauses
    )
