"""Overview: jobs by status, throughput, answer time, workers and leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import events
from textual.widgets import Static

from draftsman.entities.cells import ROLES
from draftsman.formats import times
from draftsman.formats.amounts import count_text, counted
from draftsman.formats.invisible import one_line
from draftsman.formats.sparklines import sparkline
from draftsman.jobs.counts import WORDS, number_of
from draftsman.jobs.details.stats import RecentActivity
from draftsman.jobs.status_display import STATUSES, Meaning
from draftsman_tui.dashboard.frame import dashboard_stats
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats, WorkerStats
from draftsman_tui.dashboard.widgets import row_renderer

SKEW: Final = 2.0
"""Seconds of clock skew that are reported."""
WIDTHS: Final = (30, 15, 10, 6, 5)
"""Numbers of sparkline bars, of which the largest that fits is used."""
FAILURES: Final = "failures"
_SHOWN: Final = (
    *("queued", "claimed", "resumed", "scheduled", "retrying", "running", "waiting"),
    *(FAILURES, "completed", "canceled", "expired"),
)
"""Words of `WORDS`, and the open failures, in their order."""
_ALWAYS: Final = ("queued", "running", "waiting")
_LESS_IMPORTANT: Final = (
    "expired",
    "canceled",
    "completed",
    "scheduled",
    "waiting",
    "retrying",
    "claimed",
    "resumed",
    "queued",
)
"""Counts that a narrow screen leaves out, in this order."""
WIDE: Final = 100
"""Width for the long texts."""


class Overview(Static):
    """Two lines of statistics; the second starts with problems.

    `supervised`: `draftsman up` starts a worker for this dashboard.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {*row_renderer.CLASSES}
    _lines: Callable[..., Text] | None = None
    """Returns the lines for a width and styles; None until there are statistics."""
    _drawn = Text()

    def __init__(self, *, supervised: bool = False) -> None:
        super().__init__()
        self._supervised = supervised

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw())

    def show_notice(self, text: str) -> None:
        """Show a text until there are statistics."""
        if self._lines is None:
            self.update(Text(one_line(text), no_wrap=True, overflow="ellipsis"), layout=False)

    def show(
        self, stats: DashboardStats, now: datetime, stale: float = 0, *, waiting: int = 0
    ) -> None:
        """Show statistics; `stale` is their age in seconds if they are old.

        `waiting` is the number of questions for the user.
        """
        supervised = self._supervised
        self._lines = partial(lines, stats, now, stale, supervised=supervised, waiting=waiting)
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._lines is None:
            return
        styles = {
            role: self.get_component_rich_style(f"rows--{role}", partial=True)
            for role in row_renderer.ROLES
        }
        drawn = self._lines(width=self.content_size.width, styles=styles)
        if drawn != self._drawn:
            self._drawn = drawn
            self.update(drawn, layout=False)


def lines(
    stats: DashboardStats,
    now: datetime,
    stale: float = 0,
    *,
    width: int,
    supervised: bool = False,
    waiting: int = 0,
    styles: Mapping[str, Style] = MappingProxyType({}),
) -> Text:
    """Return the overview for a width in cells; `styles` has the styles of roles.

    `supervised` is as for `Overview`.
    """
    narrow = width < WIDE
    workers = _workers(stats.workers, supervised=supervised)
    leading = [*_problems(stats, stale), *workers]
    separator = Text("  " if narrow else " · ")
    for bars in WIDTHS:
        figures = [*leading, *_activity(stats.activity, now, bars)]
        if separator.join(figures).cell_len <= width:
            break
    first = Text("  ").join([*_waiting(waiting, styles), *_counts(stats, styles)])
    for count in range(len(_LESS_IMPORTANT) if first.cell_len > width else 0):
        hidden = _LESS_IMPORTANT[: count + 1]
        first = Text("  ").join([*_waiting(waiting, styles), *_counts(stats, styles, hidden)])
        if first.cell_len <= width:
            break
    second = separator.join(_fitting(figures, separator.cell_len, width))
    return Text.assemble(first, "\n", second, no_wrap=True, overflow="ellipsis")


def _fitting(figures: Sequence[Text], between: int, width: int) -> list[Text]:
    """Return the leading figures that fit; at least the first."""
    room = width + between
    fitting: list[Text] = []
    for figure in figures:
        room -= figure.cell_len + between
        if room < 0 and fitting:
            break
        fitting.append(figure)
    return fitting


def _waiting(count: int, styles: Mapping[str, Style]) -> Iterator[Text]:
    """Yield the number of questions for the user, if there are any."""
    if count:
        style = styles.get("asks", Style()) + Style(bold=True, reverse=True)
        noun = "question" if count == 1 else "questions"
        yield Text(f" {count_text(count)} {noun} for you ", style)


def _counts(
    stats: DashboardStats, styles: Mapping[str, Style], hidden: Sequence[str] = ()
) -> Iterator[Text]:
    """Yield the number of jobs by status, of failures only the open ones."""
    for word in _SHOWN:
        count = (
            sum(stats.open_failures.values()) if word == FAILURES else number_of(word, stats.jobs)
        )
        if word in hidden or not (count or word in _ALWAYS):
            continue
        meaning = Meaning.FAILURE if word == FAILURES else STATUSES[min(WORDS[word])].meaning
        role = ROLES[meaning]
        style = styles.get(role, Style()) + Style(bold=True)
        number = count_text(count)
        yield Text(f"{word} ").append(number, style if count else styles.get("dim", ""))


def _problems(stats: DashboardStats, stale: float) -> Iterator[Text]:
    """Yield problems, highlighted."""
    workers = stats.workers
    problems = []
    if stale:
        problems.append(f"as of {times.span(stale)} ago")
    if abs(stats.skew) >= SKEW:
        direction = "ahead" if stats.skew > 0 else "behind"
        problems.append(f"your clock is {times.span(stats.skew)} {direction}")
    if workers.health and workers.leader is None:
        problems.append("no leader")
    for name, text in (("silent", "not responding"), ("lost", "lost")):
        if count := workers.health.get(name):
            problems.append(f"{counted(count, 'worker')} {text}")
    if stats.unhandled and workers.health:
        and_more = f" and {len(stats.unhandled) - 1} more" if len(stats.unhandled) > 1 else ""
        problems.append(f"no worker handles {one_line(stats.unhandled[0])}{and_more}")
    return (Text(f" {problem} ", "bold reverse") for problem in problems)


def _workers(workers: WorkerStats, *, supervised: bool) -> Iterator[Text]:
    """Yield the workers and the leader."""
    if not workers.health:
        hint = "its worker is starting" if supervised else "to start one: draftsman up"
        yield Text(f"no workers; {hint}", "bold")
        return
    draining = workers.health.get("draining", 0)
    words = [f"{workers.health.get('alive', 0)} alive"] + [f"{draining} draining"] * bool(draining)
    yield Text(f"{', '.join(words)}, {workers.busy}/{workers.slots} busy")
    if workers.leader is not None:
        silent = times.span(workers.leader_silent)
        yield Text(
            f"leader {workers.leader}, {silent}", "bold reverse" if workers.leader_late else ""
        )


def _activity(activity: RecentActivity | None, now: datetime, bars: int) -> Iterator[Text]:
    """Yield throughput and answer time of the last half hour."""
    if activity is None:
        return
    finished = dashboard_stats.finished(activity, now)
    bars_text = sparkline(dashboard_stats.throughput(activity, now, bars))
    yield Text(f"finished {count_text(finished)} in {dashboard_stats.WINDOW} min {bars_text}")
    seconds = dashboard_stats.answer_time(activity, now)
    if seconds is not None:
        bars_text = sparkline(dashboard_stats.answer_times(activity, now, bars))
        yield Text(f"median answer {times.span(seconds)} {bars_text}")
