"""The strip at the top: counts by status, throughput, answers, who leads, how the clocks differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text
from textual.widgets import Static

from draftsman_tui.cli import times
from draftsman_tui.dashboard.messages import Counted

SKEW: Final = 2.0
"""Seconds between the clocks that are worth a word."""
_BARS: Final = " ▁▂▃▄▅▆▇█"
_SHOWN: Final = (
    ("queued", ("queued", "claimed", "resumed")),
    ("scheduled", ("scheduled",)),
    ("retrying", ("retrying",)),
    ("running", ("running",)),
    ("asking", ("waiting_for_input", "waiting_for_approval")),
    ("failed", ("failed",)),
    ("dead", ("dead_letter",)),
    ("completed", ("completed",)),
)
_ALWAYS: Final = ("queued", "running", "asking")


class Overview(Static):
    """Two lines of numbers."""

    def show(self, counted: Counted, *, stale: float = 0) -> None:
        """Show what was counted; `stale` is how many seconds ago, where that is long."""
        self.update(
            Text.assemble(
                _counts(counted),
                "\n",
                _health(counted, stale),
                no_wrap=True,
                overflow="ellipsis",
            )
        )


def sparkline(values: Sequence[int | float]) -> str:
    """Return a bar for each value, the highest one full."""
    top = max(values, default=0)
    if top <= 0:
        return "▁" * len(values)
    return "".join(_BARS[max(1, round(8 * value / top))] for value in values)


def _counts(counted: Counted) -> Text:
    stats = counted.stats
    line = Text()
    for word, statuses in _SHOWN:
        count = sum(stats.jobs[status] for status in statuses)
        if not count and word not in _ALWAYS:
            continue
        more = "+" if any(status in stats.at_least for status in statuses) else ""
        line.append(f"{word} ").append(f"{count:,}{more}  ", "bold" if count else "dim")
    return line


def _health(counted: Counted, stale: float) -> Text:
    stats, parts = counted.stats, []
    if abs(counted.skew) >= SKEW:
        parts.append(f"this clock is {counted.skew:+.0f} s off")
    if stale:
        parts.append(f"as of {times.span(stale)} ago")
    parts.append(f"{sparkline(counted.ended)} {sum(counted.ended)}/min")
    if stats.answer_seconds is not None:
        parts.append(
            f"answers {stats.answers_last_day}, half within {times.span(stats.answer_seconds)}"
        )
    if stats.workers:
        many = "workers" if stats.workers > 1 else "worker"
        leader = f"led by {counted.leader}" if counted.leader else "no leader"
        parts.append(f"{stats.workers} {many}, {stats.busy} of {stats.slots} busy, {leader}")
    else:
        parts.append("no worker: draftsman up")
    return Text(" · ".join(parts))
