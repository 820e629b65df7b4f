"""Guard against a loss of performance: the costs of a job compared with the recorded costs.

Times depend on the machine and on its other work, costs much less. WAL is compared as it is. CPU is
that of the client and of the server together, divided by the CPU of a peer in the same round: other
work on the machine slows both.
"""

from __future__ import annotations

import platform
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.queue_process import Contestant
from bench.report import OURS, Figures, Key, Results, grid, number
from bench.server import BenchError

RECORDED = Path(__file__).with_name("recorded.toml")
PEER = "pgqueuer"
MEASURES = ("submit", "batch1000", "drain10", "drain100")
LIMIT = 0.10
"""Part of a cost by which it may grow."""
ROUNDS = 5
JOBS = 50_000
"""Jobs of the largest drain: enough for the start of a worker to be a small part of its cost."""
BUSY = 0.25
"""Part of the CPU of the machine used by other programs, over which CPU is not certain."""
TITLES = {"cpu": f"CPU / {PEER}'s", "wal_bytes": "WAL B"}
HEADER = """\
# Costs of a job: CPU of client and server divided by that of pgqueuer, and bytes of WAL; medians.
# `make bench ARGS=--guard` compares with them, `make bench ARGS=--record` writes them.
"""
Setup = dict[str, Any]
Recorded = dict[str, Any]
"""The setup, and the costs of each measure."""


@dataclass(frozen=True, slots=True)
class Change:
    """A cost of a measure, recorded and measured."""

    measure: str
    cost: str
    recorded: float
    values: list[float]
    """The cost in each round."""

    @property
    def growth(self) -> float:
        """Growth of the median, as a part of the recorded cost."""
        return median(self.values) / self.recorded - 1

    @property
    def lost(self) -> bool:
        """Whether the median is over the limit, and three rounds of four were over the record.

        The second condition excludes rounds that differ more from each other than from the record.
        """
        low = quantiles(self.values, n=4)[0] if len(self.values) > 1 else self.values[0]
        return self.growth > LIMIT and low > self.recorded

    def certain(self, other: float) -> bool:
        """Return whether a loss is certain if other programs used this part of the CPU."""
        return self.cost != "cpu" or other <= BUSY

    @property
    def line(self) -> str:
        """Return the report of a loss."""
        return (
            f"{self.measure}: {TITLES[self.cost]} a job {number(median(self.values))},"
            f" recorded {number(self.recorded)}: {self.growth:+.0%}, the limit is {LIMIT:+.0%}"
        )


def setup(jobs: int, postgresql: str, sides: Sequence[Contestant], results: Results) -> Setup:
    """Return the conditions that a comparison requires; raises BenchError without the peer."""
    peer = next((side.version for side in sides if side.name == PEER), None)
    if peer is None:
        raise BenchError(f"no comparison without {PEER}: {results.missing.get(PEER)}")
    return {
        "jobs": jobs,
        "postgresql": postgresql,
        "python": ".".join(map(str, sys.version_info[:2])),
        "peer": peer,
        "system": f"{platform.system()} {platform.machine()}",
    }


def load(path: Path) -> Recorded:
    """Return the recorded setup and costs; raises BenchError."""
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise BenchError(f"there is no {path.name}; write it with --record") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BenchError(f"{path.name} is damaged ({error}); write it with --record") from None


def check_setup(recorded: Recorded, now: Setup) -> None:
    """Refuse a comparison of figures that were not measured alike; raises BenchError."""
    before = recorded.get("setup", {})
    if differs := [name for name in now if before.get(name) != now[name]]:
        parts = ", ".join(f"{name} {before.get(name)}, now {now[name]}" for name in differs)
        raise BenchError(
            f"not comparable: {RECORDED.name} was measured with {parts};"
            " measure with the same, or write it with --record"
        )


def changes(results: Results, recorded: Recorded) -> list[Change]:
    """Return every cost, recorded and measured; raises BenchError if something is missing."""
    found = []
    for measure in MEASURES:
        for cost, values in rounds(results, measure).items():
            before = recorded.get(measure, {}).get(cost)
            if not before:
                raise BenchError(f"{RECORDED.name} has no {cost} of {measure}; use --record")
            found.append(Change(measure, cost, before, values))
    return found


def losses(results: Results, recorded: Recorded, other: float) -> list[Change]:
    """Return the certain losses, if other programs used this part of the CPU; raises BenchError."""
    found = changes(results, recorded)
    return [change for change in found if change.lost and change.certain(other)]


def rounds(results: Results, measure: str) -> dict[str, list[float]]:
    """Return the costs of a measure in each round; raises BenchError."""
    ours, theirs = (results.rounds.get(Key(measure, name), []) for name in (OURS, PEER))
    if not theirs or len(ours) != len(theirs):
        raise BenchError(
            f"no comparison without {PEER}: {results.missing.get(f'{PEER} {measure}')}"
        )
    if "server_us" not in ours[0]:
        raise BenchError("no comparison: the server's processes are not seen from here")
    ratios = [_cpu(own) / _cpu(other) for own, other in zip(ours, theirs, strict=True)]
    return {"cpu": ratios, "wal_bytes": [own["wal_bytes"] for own in ours]}


def _cpu(figures: Figures) -> float:
    return figures["cpu_us"] + figures["server_us"]


def document(results: Results, now: Setup) -> str:
    """Render the file of recorded costs."""
    lines = ["[setup]", *(f"{name} = {_toml(value)}" for name, value in now.items())]
    for measure in MEASURES:
        costs = rounds(results, measure)
        lines += ["", f"[{measure}]", f"cpu = {median(costs['cpu']):.3f}"]
        lines += [f"wal_bytes = {median(costs['wal_bytes']):.0f}"]
    return HEADER + "\n" + "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    return str(value) if isinstance(value, int) else f'"{value}"'


def report(found: list[Change], other: float) -> str:
    """Render a line for each cost."""
    rows = [
        (
            change.measure,
            TITLES[change.cost],
            number(change.recorded),
            number(median(change.values)),
            f"{change.growth:+.1%}",
            ("lost" if change.certain(other) else "uncertain") if change.lost else "",
        )
        for change in found
    ]
    table = grid(("guard", "a job", "recorded", "measured", "growth", ""), rows)
    return f"{table}\n\n{busy(other)}" if other > BUSY else table


def busy(other: float) -> str:
    """Return the warning about a machine with other work."""
    return f"other programs used {other:.0%} of the CPU: repeat without them to compare CPU"
