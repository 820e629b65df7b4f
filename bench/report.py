"""Medians and ratios of them, as a table or as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

Figures = dict[str, float]
TIMES = ("p50_ms", "p99_ms")


@dataclass(slots=True)
class Result:
    """What one measure gave in each round: draftsman, and what it is held against."""

    name: str
    against: str
    ours: list[Figures] = field(default_factory=list)
    other: list[Figures] = field(default_factory=list)

    def summary(self) -> dict[str, object]:
        """Return medians, the ratio of each to the other's, and every figure."""
        ours, other = _medians(self.ours), _medians(self.other)
        return {
            "against": self.against,
            "draftsman": ours,
            "other": other,
            "ratio": {key: ours[key] / other[key] for key in ours if other.get(key)},
            "rounds": {"draftsman": self.ours, "other": self.other},
        }


def table(results: list[Result], about: dict[str, object]) -> str:
    """Return the medians as text; a ratio over 1 is good for a rate, under 1 for a time."""
    lines = [", ".join(f"{key} {value}" for key, value in about.items()), ""]
    lines.append(f"{'':10} {'draftsman':>13} {'other':>13} {'ratio':>6}  other is")
    for result in results:
        ours, other = _medians(result.ours), _medians(result.other)
        shown = [key for key in ("rate", *TIMES) if key in ours]
        lines += [_line(result, key, ours[key], other.get(key)) for key in shown]
    lines += ["", f"{'per job':18} {'CPU us':>8} {'WAL B':>8} {'commits':>8} {'RSS MB':>8}"]
    for result in results:
        for who, rounds in (("draftsman", result.ours), ("other", result.other)):
            if "wal_bytes" in (found := _medians(rounds)):
                lines.append(
                    f"{result.name:8} {who:9} {found['cpu_us']:8.1f} {found['wal_bytes']:8.0f}"
                    f" {found['commits']:8.4f} {found['rss_mb']:8.1f}"
                )
    return "\n".join(lines)


def _line(result: Result, key: str, ours: float, other: float | None) -> str:
    name = f"{result.name} {key[:3]}" if key in TIMES else result.name
    held = f"{_shown(key, other):>13} {ours / other:6.2f}" if other else " " * 20
    return f"{name:10} {_shown(key, ours):>13} {held}  {result.against}".rstrip()


def _shown(key: str, value: float) -> str:
    return f"{value:,.0f}/s" if key == "rate" else f"{value:.2f} ms"


def _medians(rounds: list[Figures]) -> Figures:
    return {key: median(one[key] for one in rounds) for key in rounds[0]} if rounds else {}
