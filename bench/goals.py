"""Performance goals of draftsman. A missed goal is reported and does not fail the benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from bench.hosts import NAMES
from bench.report import OURS, Key, Results, grid, number

RATES = ("submit", "batch1000", "drain10", "drain100")
DRAINS = ("drain10", "drain100")
LIMITED = tuple(
    (f"{limit}{slots}", f"drain{slots}")
    for limit in ("wide", "limited", "rate", "persons")
    for slots in (10, 100)
)
"""Drains with limits, and the plain drain."""
FLOORS = {"drain10": "swap of 10", "drain100": "swap of 100"}
"""The smallest statement that does the work of a drain."""
TIMES = ("idle", "answer")
BEST = "the best peer"
PAINTS = ("paint_ms", "down_p50_ms", "page_p50_ms", "view_p50_ms", "filter_p50_ms")


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure of draftsman, or its ratio to that of another queue, and the limit."""

    measure: str
    figure: str
    limit: float
    least: bool = True
    """Whether the limit is a minimum, not a maximum."""
    against: str = ""
    """Name of the other queue, or BEST for the best of all measured peers."""
    past: bool = False
    """Whether it is the ratio of the figures with and without a history."""
    over: bool = False
    """Whether it is the figure with a history."""
    host: str = ""
    """Server whose figure is divided by that on the bench's own server."""
    plain: str = ""
    """Measure of draftsman that the figure is divided by."""
    floor: str = ""
    """Smallest statement whose ratio of the two servers this ratio is divided by."""

    @property
    def name(self) -> str:
        """Name of the comparison."""
        if self.past:
            figure = "" if self.least else f" {self.figure}"
            return f"{self.measure}{figure}, over a past / without"
        if self.figure == "pair":
            return f"{self.measure} / idle"
        what = self.measure if self.figure == "rate" else f"{self.measure} {self.figure}"
        if self.host:
            name = f"{what} {self.host} / on the bench's server"
            return f"{name}, / that of a {self.floor}" if self.floor else name
        if self.plain:
            return f"{what} / {self.plain}"
        return f"{what} / {self.against}" if self.against else what

    def measured(self, results: Results) -> float | None:
        """Return the measured value, or None if it was not measured."""
        ours = Key(self.measure, OURS)
        if self.past:
            over = Key(self.measure, OURS, True)
            faster = self.figure == "rate" or not self.least
            pair = (over, ours) if faster else (ours, over)
            return results.ratio(*pair, self.figure)
        if self.host:
            return self._on_host(results, ours)
        if self.plain:
            return results.ratio(ours, Key(self.plain, OURS), self.figure)
        if self.against == BEST:
            return self._to_best(results, ours)
        if self.against:
            return results.ratio(ours, Key(self.measure, self.against), self.figure)
        return results.median(Key(self.measure, OURS, self.over), self.figure)

    def _to_best(self, results: Results, ours: Key) -> float | None:
        own = results.median(ours, self.figure)
        peers = results.queues(self.measure)
        figures = [
            figure
            for queue in peers
            if queue != OURS and (figure := results.median(Key(self.measure, queue), self.figure))
        ]
        if own is None or not figures:
            return None
        return own / (max(figures) if self.least else min(figures))

    def _on_host(self, results: Results, ours: Key) -> float | None:
        ratio = results.ratio(Key(self.measure, self.host), ours, self.figure)
        if not self.floor:
            return ratio
        there = Key("floor", f"{self.floor} {self.host}")
        here = Key("floor", self.floor)
        floor = results.ratio(there, here, self.figure)
        return ratio / floor if ratio and floor else None

    def verdict(self, results: Results) -> tuple[str, str, str, str]:
        """Return the report of the goal: name, measured value, limit, and whether it is met."""
        value = self.measured(results)
        limit = f"{'>=' if self.least else '<='} {self.limit:g}"
        if value is None:
            return self.name, "", limit, "not measured"
        met = value >= self.limit if self.least else value <= self.limit
        missed = f"missed by {abs(value - self.limit) / self.limit:.0%}"
        return self.name, number(value), limit, "met" if met else missed


def most(measure: str, figure: str, limit: float, against: str = "") -> Goal:
    """Create a goal with a maximum."""
    return Goal(measure, figure, limit, least=False, against=against)


GOALS = (
    Goal("drain100", "rate", 1.5, against="pgqueuer"),
    Goal("drain100", "rate", 30, against="procrastinate"),
    Goal("drain100", "rate", 2.0, against="oban"),
    Goal("drain100", "rate", 0.6, against="graphile"),
    Goal("drain10", "rate", 1.2, against="pgqueuer"),
    Goal("drain10", "rate", 1.5, against="graphile"),
    Goal("submit", "rate", 1.0, against="pgqueuer"),
    Goal("submit", "rate", 0.85, against="pgbench"),
    Goal("submit50", "rate", 4, plain="submit"),
    Goal("repo1000", "rate", 0.8, plain="repo1"),
    Goal("batch1000", "rate", 0.9, against="pgqueuer"),
    most("idle", "p50_ms", 1.0, BEST),
    most("answer", "pair", 2.0),
    most("drain100", "cpu_us", 20),
    most("drain100", "server_us", 60),
    most("drain100", "wal_bytes", 2000),
    most("drain100", "commits", 0.03),
    most("drain100", "rss_mb", 45),
    *(Goal(measure, "rate", 0.8, plain=drain) for measure, drain in LIMITED),
    *(Goal(measure, "kept", 0.9) for measure in ("workers10", "workers100")),
    *(most(measure, "skipped_percent", 0.5) for measure in ("workers10", "workers100")),
    *(Goal(measure, "kept", 0.85) for measure in ("deep", "deep_snapshot")),
    most("helps", "largest_ratio", 2.0),
    *(most("commands", f"{name}_cpu_ratio", 1.15) for name in ("submit", "show", "answer")),
    most("held", "ratio", 1.2),
    most("schedules", "fired_s", 60),
    most("agents", "over_ms", 60),
    most("agents", "call_over_ms", 5),
    *(Goal(drain, "rate", 0.9, host=host) for drain in DRAINS for host in NAMES),
    *(
        Goal(drain, "server_us", 1.1, least=False, host=host, floor=floor)
        for drain, floor in FLOORS.items()
        for host in NAMES
    ),
    Goal("slack", "rate", 0.5, against="bolt"),
    most("slack", "p99_ms", 3.0, "bolt"),
    Goal("slack1000", "rate", 0.8, plain="slack"),
    *(Goal(measure, "rate", 0.9, past=True) for measure in RATES),
    *(Goal(measure, "p50_ms", 0.9, past=True) for measure in TIMES),
    *(Goal("dashboard", name, 1.5, least=False, past=True) for name in PAINTS),
    most("dashboard", "first_frame_ratio", 1.0),
    most("dashboard", "key_p50_ratio", 1.0),
    Goal("dashboard", "idle_server", 2, least=False, over=True),
    Goal("dashboard", "grows_mib", 0.1, least=False, over=True),
)


def goals(results: Results) -> str:
    """Render a line for each goal, and the number of goals that are met."""
    lines = [goal.verdict(results) for goal in GOALS]
    met = sum(line[-1] == "met" for line in lines)
    left = sum(line[-1] == "not measured" for line in lines)
    table = grid(("goal", "measured", "wanted", ""), lines)
    return f"{table}\n\n{met} of {len(lines)} goals met, {left} not measured"
