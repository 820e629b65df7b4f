"""Guard against a loss of performance: the costs of a job compared with those of an older commit.

Times depend on the machine and on its other work, costs much less, and their ratios least of all:
both commits are measured in alternation in the same run. CPU is that of the client and of the
server together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles

from bench import baseline
from bench.report import OURS, Figures, Key, Results, grid, number
from bench.resource_usage import BUSY
from bench.server import BenchError

MEASURES = ("submit", "batch1000", "drain10", "drain100")
LIMIT = 0.10
"""Part of a cost by which it may grow."""
ROUNDS = 5
JOBS = 50_000
"""Jobs of the largest drain: enough for the start of a worker to be a small part of its cost."""


def _cpu(figures: Figures) -> float:
    return figures["cpu_us"] + figures["server_us"]


COSTS: dict[str, Callable[[Figures], float]] = {
    "CPU us": _cpu,
    "WAL B": lambda figures: figures["wal_bytes"],
}


@dataclass(frozen=True, slots=True)
class Change:
    """A cost of a measure at the other commit and now, in each round."""

    measure: str
    cost: str
    before: list[float]
    now: list[float]

    @property
    def ratios(self) -> list[float]:
        """The cost now, divided by that of the other commit in the same round."""
        return [now / before for now, before in zip(self.now, self.before, strict=True)]

    @property
    def growth(self) -> float:
        """Median growth, as a part of the cost before."""
        return median(self.ratios) - 1

    @property
    def lost(self) -> bool:
        """Whether the median is over the limit, and three rounds of four are a growth.

        The second condition excludes rounds that differ more from each other than from before.
        """
        low = quantiles(self.ratios, n=4)[0] if len(self.ratios) > 1 else self.ratios[0]
        return self.growth > LIMIT and low > 1

    def certain(self, other: float) -> bool:
        """Return whether a loss is certain if other programs used this part of the CPU."""
        return self.cost != "CPU us" or other <= BUSY

    @property
    def line(self) -> str:
        """Return the report of a loss."""
        return (
            f"{self.measure}: {self.cost} a job {number(median(self.now))},"
            f" before {number(median(self.before))}: {self.growth:+.0%}, the limit is {LIMIT:+.0%}"
        )


def changes(results: Results) -> list[Change]:
    """Return every cost before and now; raises BenchError if something is missing."""
    found = []
    for measure in MEASURES:
        now, before = (results.rounds.get(Key(measure, name), []) for name in (OURS, baseline.NAME))
        if not before or len(now) != len(before):
            what = f"{baseline.NAME} {measure}"
            reason = results.missing.get(what) or results.missing.get(baseline.NAME)
            raise BenchError(f"the other commit cannot be compared: {measure}: {reason}")
        if "server_us" not in now[0]:
            raise BenchError("no comparison: the server's processes are not seen from here")
        for cost, read in COSTS.items():
            found.append(Change(measure, cost, [*map(read, before)], [*map(read, now)]))
    return found


def losses(results: Results, other: float) -> list[Change]:
    """Return the certain losses, if other programs used this part of the CPU; raises BenchError."""
    return [change for change in changes(results) if change.lost and change.certain(other)]


def report(found: list[Change], other: float) -> str:
    """Render a line for each cost."""
    rows = [
        (
            change.measure,
            change.cost,
            number(median(change.before)),
            number(median(change.now)),
            f"{change.growth:+.1%}",
            ("lost" if change.certain(other) else "uncertain") if change.lost else "",
        )
        for change in found
    ]
    return grid(("guard", "a job", "before", "now", "growth", ""), rows)
