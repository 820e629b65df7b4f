"""Tab bar of the tables, with the numbers that need attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from draftsman_tui.dashboard.views import VIEWS
from draftsman_tui.dashboard.widgets.tabs import Tab

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from draftsman_tui.dashboard.attention.attention import AttentionCount
    from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats

KEYED: Final = 10
"""Tables that have a key; the others open by name."""
MIN_HEIGHT: Final = 30
"""Height from which the tab bar is shown."""
COUNTED: Final = 100
"""Width from which the numbers are shown."""
LIVE: Final = (
    *("scheduled", "queued", "claimed", "running", "retrying", "resumed"),
    *("waiting_for_input", "waiting_for_approval"),
)
"""Statuses of the jobs that are counted."""
SHORT: Final = {"deliveries": "deliv", "workers": "work", "events": "event", "boards": "board"}
"""Labels on narrow screens."""


def table_tabs(stats: DashboardStats | None, attention: AttentionCount | None) -> Sequence[Tab]:
    """Return a tab for each table with a key."""
    counts = _counts(stats, attention)
    mine = attention.mine if attention is not None else 0
    return [
        Tab(
            name,
            SHORT.get(name, name),
            str(nth % KEYED),
            count=counts.get(name),
            needs_attention=name == "inbox" and mine > 0,
        )
        for nth, name in enumerate(list(VIEWS)[:KEYED], 1)
    ]


def _counts(stats: DashboardStats | None, attention: AttentionCount | None) -> Mapping[str, int]:
    """Return live jobs, open questions, dead letters and workers."""
    counts: dict[str, int] = {}
    if attention is not None:
        counts["inbox"] = attention.open
    if stats is not None:
        counts["jobs"] = sum(stats.jobs.get(status, 0) for status in LIVE)
        counts["dead"] = stats.jobs.get("dead_letter", 0)
        counts["workers"] = sum(stats.workers.health.values())
    return counts
