"""What the strip says, worked out: who works, what ended, and how long people took to answer.

Pure: of counted values and a time by the database's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final

from draftsman.domain.ids import worker_name
from draftsman.services.jobs.read_model import BUCKET_SECONDS, Activity

WINDOW: Final = 30
"""Minutes that a sparkline shows."""
_MINUTE: Final = 60 // BUCKET_SECONDS


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """The workers: how many are alive, draining, silent or lost, and which of them leads."""

    health: Mapping[str, int] = field(default_factory=dict)
    busy: int = 0
    slots: int = 0
    """Of those that are alive."""
    leader: str | None = None
    """Its name, as every table has it."""
    leader_silent: float = 0
    """Seconds since it was heard."""
    leader_late: bool = False
    """Whether it was not heard when it should have been."""


@dataclass(frozen=True, slots=True)
class DashboardStats:
    """One count: jobs by status, the crew, how far our clock is ahead, what happened of late."""

    jobs: Mapping[str, int]
    at_least: Sequence[str]
    crew: WorkerStats
    skew: float = 0
    pulse: Activity | None = None
    """None: not known yet."""


def worker_stats(workers: Sequence[tuple[Any, str]]) -> WorkerStats:
    """Return what is to be said of workers, each with its health."""
    working = [one for one, health in workers if health == "alive"]
    leader, health = next(
        ((one, health) for one, health in workers if one.leader and health != "lost"), (None, "")
    )
    return WorkerStats(
        Counter(health for _, health in workers),
        sum(one.busy for one in working),
        sum(one.slots for one in working),
        None if leader is None else worker_name(leader.id),
        0 if leader is None else leader.silent,
        health == "silent",
    )


def merge_activity(pulse: Activity, more: Activity) -> Activity:
    """Return a pulse with what came after it, without what is too old to be shown."""
    spans = {at: span for at, span in pulse.spans.items() if at >= more.since}
    spans |= {at: span + spans.get(at) for at, span in more.spans.items() if at >= more.since}
    return Activity(spans, more.end, max(pulse.since, more.since))


def last_minute(pulse: Activity, now: datetime) -> int:
    """Return how many jobs ended in the last minute."""
    end = _end(now)
    return sum(_ended(pulse, at) for at in range(end - _MINUTE, end))


def throughput(pulse: Activity, now: datetime, bars: int) -> list[int | None]:
    """Return how many jobs ended in each part of the last half hour; None: that is not known."""
    return [
        sum(_ended(pulse, at) for at in part) if part[0] >= pulse.since else None
        for part in _parts(now, bars)
    ]


def answer_times(pulse: Activity, now: datetime, bars: int) -> list[float | None]:
    """Return the median seconds to an answer in each part; None: there was none."""
    return [_median(pulse, part) for part in _parts(now, bars)]


def answer_time(pulse: Activity, now: datetime) -> float | None:
    """Return the median seconds to an answer in the last half hour."""
    return answer_times(pulse, now, 1)[0]


def _median(pulse: Activity, part: range) -> float | None:
    found = [took for at in part if at in pulse.spans for took in pulse.spans[at].answers]
    return median(found) if found else None


def _ended(pulse: Activity, at: int) -> int:
    return pulse.spans[at].ended if at in pulse.spans else 0


def _end(now: datetime) -> int:
    return int(now.timestamp()) // BUCKET_SECONDS + 1


def _parts(now: datetime, bars: int) -> list[range]:
    """Return the spans of each bar, the newest last."""
    size, end = WINDOW * _MINUTE // bars, _end(now)
    return [range(end - nth * size, end - (nth - 1) * size) for nth in range(bars, 0, -1)]
