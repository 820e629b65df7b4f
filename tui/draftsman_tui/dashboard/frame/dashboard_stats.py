"""Statistics of the overview: workers, throughput and answer times.

Pure functions of counted values and a time of the database's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final

from draftsman.ids import worker_name
from draftsman.jobs.details.service.read_model import BUCKET_SECONDS
from draftsman.jobs.details.stats import RecentActivity

WINDOW: Final = 30
"""Minutes shown by a sparkline."""
_BUCKETS_PER_MINUTE: Final = 60 // BUCKET_SECONDS


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """Workers by health, slots and leader."""

    health: Mapping[str, int] = field(default_factory=dict)
    busy: int = 0
    slots: int = 0
    """Slots of alive workers."""
    leader: str | None = None
    """Name of the leader."""
    leader_silent: float = 0
    """Seconds since its last heartbeat."""
    leader_late: bool = False
    """Whether its heartbeat is overdue."""


@dataclass(frozen=True, slots=True)
class DashboardStats:
    """Jobs by status, open failures, workers, clock skew and recent activity."""

    jobs: Mapping[str, int]
    workers: WorkerStats
    skew: float = 0
    activity: RecentActivity | None = None
    """None: not loaded yet."""
    unhandled: Sequence[str] = ()
    """The types of waiting jobs that no live worker handles."""
    open_failures: Mapping[str, int] = field(default_factory=dict)
    """Failures by status that need a person: neither retried nor dismissed."""


def worker_stats(workers: Sequence[tuple[Any, str]]) -> WorkerStats:
    """Aggregate workers, given with their health."""
    alive = [worker for worker, health in workers if health == "alive"]
    leader, health = next(
        ((worker, health) for worker, health in workers if worker.leader and health != "lost"),
        (None, ""),
    )
    return WorkerStats(
        health=Counter(health for _, health in workers),
        busy=sum(worker.busy for worker in alive),
        slots=sum(worker.slots for worker in alive),
        leader=None if leader is None else worker_name(leader.id),
        leader_silent=0 if leader is None else leader.heartbeat_age,
        leader_late=health == "silent",
    )


def merge_activity(activity: RecentActivity, newer: RecentActivity) -> RecentActivity:
    """Append newer activity, and drop what is older than the window."""
    spans = {at: span for at, span in activity.spans.items() if at >= newer.since}
    spans |= {at: span + spans.get(at) for at, span in newer.spans.items() if at >= newer.since}
    return RecentActivity(spans, newer.end, max(activity.since, newer.since))


def finished(activity: RecentActivity, now: datetime) -> int:
    """Return the jobs finished in the window, as far as it is known."""
    return sum(_finished_in(activity, at) for at in _bar_buckets(now, 1)[0])


def throughput(activity: RecentActivity, now: datetime, bars: int) -> list[int | None]:
    """Return the jobs finished in each interval of the window; None: unknown."""
    return [
        sum(_finished_in(activity, at) for at in buckets) if buckets[0] >= activity.since else None
        for buckets in _bar_buckets(now, bars)
    ]


def answer_times(activity: RecentActivity, now: datetime, bars: int) -> list[float | None]:
    """Return the median seconds to an answer in each interval; None: no answers."""
    return [_median(activity, buckets) for buckets in _bar_buckets(now, bars)]


def answer_time(activity: RecentActivity, now: datetime) -> float | None:
    """Return the median seconds to an answer in the window."""
    return answer_times(activity, now, 1)[0]


def _median(activity: RecentActivity, buckets: range) -> float | None:
    seconds = [
        answer_time
        for at in buckets
        if at in activity.spans
        for answer_time in activity.spans[at].answers
    ]
    return median(seconds) if seconds else None


def _finished_in(activity: RecentActivity, at: int) -> int:
    return activity.spans[at].finished if at in activity.spans else 0


def _end(now: datetime) -> int:
    return int(now.timestamp()) // BUCKET_SECONDS + 1


def _bar_buckets(now: datetime, bars: int) -> list[range]:
    """Return the buckets of each bar, newest last."""
    size = WINDOW * _BUCKETS_PER_MINUTE // bars
    end = _end(now)
    return [range(end - nth * size, end - (nth - 1) * size) for nth in range(bars, 0, -1)]
