"""The strip at the top: jobs by status, throughput, time to answer, who leads, who works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.text import Text
from textual import events
from textual.widgets import Static

from draftsman.services.jobs.read_model import Activity
from draftsman_tui.common import times
from draftsman_tui.dashboard.polling import dashboard_stats
from draftsman_tui.dashboard.polling.dashboard_stats import DashboardStats, WorkerStats

SKEW: Final = 2.0
"""Seconds between the clocks that are worth a word."""
WIDTHS: Final = (30, 15, 10, 6, 5)
"""Bars of a sparkline, of half an hour, the most that there is room for."""
_BARS: Final = "▁▂▃▄▅▆▇█"
_SHOWN: Final = (
    ("queued", ("queued", "claimed", "resumed")),
    ("scheduled", ("scheduled",)),
    ("retrying", ("retrying",)),
    ("running", ("running",)),
    ("asking", ("waiting_for_input", "waiting_for_approval")),
    ("failed", ("failed",)),
    ("dead", ("dead_letter",)),
    ("completed", ("completed",)),
    ("canceled", ("canceled",)),
    ("expired", ("expired",)),
)
_ALWAYS: Final = ("queued", "running", "asking")
WIDE: Final = 100
"""Cells from which on there is room for words."""


class Overview(Static):
    """Two lines of numbers; what is wrong comes first in the second one."""

    _known: tuple[DashboardStats, datetime, float] | None = None
    _shown = Text()

    def show(self, counted: DashboardStats, now: datetime, stale: float = 0) -> None:
        """Show what was counted; `stale` is how many seconds ago, where that is long."""
        self._known = counted, now, stale
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Draw as much as there is room for."""
        self._draw()

    def _draw(self) -> None:
        if self._known is None:
            return
        drawn = lines(*self._known, width=self.content_size.width)
        if drawn != self._shown:
            self._shown = drawn
            self.update(drawn, layout=False)


def lines(counted: DashboardStats, now: datetime, stale: float = 0, *, width: int) -> Text:
    """Return the strip for a screen of so many cells."""
    narrow = width < WIDE
    said = [*_troubles(counted, stale), *_crew(counted.crew, narrow=narrow)]
    apart = Text("  " if narrow else " · ")
    for bars in WIDTHS:
        parts = [*said, *_flow(counted.pulse, now, bars)]
        if apart.join(parts).cell_len <= width:
            break
    first = Text("  ").join(_fitting(list(_counts(counted)), 2, width))
    second = apart.join(_fitting(parts, apart.cell_len, width))
    return Text.assemble(first, "\n", second, no_wrap=True, overflow="ellipsis")


def _fitting(parts: Sequence[Text], between: int, width: int) -> list[Text]:
    """Return the first parts, as many as there is room for: none is cut, but for the first."""
    room = width + between
    found: list[Text] = []
    for part in parts:
        room -= part.cell_len + between
        if room < 0 and found:
            break
        found.append(part)
    return found


def sparkline(values: Sequence[float | None]) -> str:
    """Return a bar for each value, the highest one full; a dot where there is none."""
    top = max((value for value in values if value is not None), default=0)
    return "".join("·" if value is None else _bar(value, top) for value in values)


def _bar(value: float, top: float) -> str:
    return _BARS[max(0, round(8 * value / top) - 1) if top > 0 else 0]


def _counts(counted: DashboardStats) -> Iterator[Text]:
    """Yield how many jobs there are, those last that are over."""
    for word, statuses in _SHOWN:
        count = sum(counted.jobs.get(status, 0) for status in statuses)
        if not count and word not in _ALWAYS:
            continue
        more = "+" if any(status in counted.at_least for status in statuses) else ""
        yield Text(f"{word} ").append(f"{count:,}{more}", "bold" if count else "dim")


def _troubles(counted: DashboardStats, stale: float) -> Iterator[Text]:
    """Yield what is wrong, to be seen from afar."""
    crew, said = counted.crew, []
    if stale:
        said.append(f"as of {times.span(stale)} ago")
    if abs(counted.skew) >= SKEW:
        said.append(f"this clock is {counted.skew:+.0f} s off")
    if crew.health and crew.leader is None:
        said.append("NOBODY LEADS")
    said += [f"{crew.health[name]} {name}" for name in ("silent", "lost") if name in crew.health]
    return (Text(f" {one} ", "bold reverse") for one in said)


def _crew(crew: WorkerStats, *, narrow: bool) -> Iterator[Text]:
    """Yield who works and who leads."""
    if not crew.health:
        yield Text("no worker: draftsman up", "bold")
        return
    draining = crew.health.get("draining", 0)
    words = [f"{crew.health.get('alive', 0)} alive"] + [f"{draining} draining"] * bool(draining)
    yield Text(f"{', '.join(words)}, {crew.busy}/{crew.slots} busy")
    if crew.leader is not None:
        silent = f"{crew.leader_silent:.0f}s" if narrow else times.span(crew.leader_silent)
        heard = silent if narrow else f"heard {silent} ago"
        yield Text(f"leader {crew.leader} {heard}", "bold reverse" if crew.leader_late else "")


def _flow(pulse: Activity | None, now: datetime, bars: int) -> Iterator[Text]:
    """Yield the last half hour: jobs that ended, and how long answers took."""
    if pulse is None:
        return
    ended = sparkline(dashboard_stats.throughput(pulse, now, bars))
    yield Text(f"ended {dashboard_stats.last_minute(pulse, now)}/min {ended}")
    took = dashboard_stats.answer_time(pulse, now)
    if took is not None:
        shown = sparkline(dashboard_stats.answer_times(pulse, now, bars))
        yield Text(f"answers {times.span(took)} {shown}")
