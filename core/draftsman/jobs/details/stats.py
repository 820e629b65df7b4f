"""Counts and recent activity of all jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ActivityBucket:
    """The activity of some seconds; `at` is the bucket's number since the epoch."""

    at: int
    finished: int
    """Jobs that finished."""
    answers: list[float]
    """Seconds until the answer, for each answered question."""

    def __add__(self, other: ActivityBucket | None) -> ActivityBucket:
        if other is None:
            return self
        return ActivityBucket(self.at, self.finished + other.finished, self.answers + other.answers)


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of jobs, questions and workers; `answer_seconds` is the median of the last day.

    Each count ends at 10,000; `capped` lists the statuses that have as many jobs, or more.
    """

    jobs: dict[str, int]
    capped: list[str]
    open_questions: int
    expiring_within_an_hour: int
    next_expiry: datetime | None
    workers: int
    slots: int
    busy: int
    answers_last_day: int
    answer_seconds: float | None
    pauses: int = 0
    """Paused queues and types."""
    open_failures: dict[str, int] = field(default_factory=dict)
    """Failures by status that are neither retried nor dismissed; at most 10,000 are counted."""


@dataclass(frozen=True, slots=True)
class RecentActivity:
    """Recent activity; `spans` holds ten-second buckets by their number since the epoch."""

    spans: dict[int, ActivityBucket]
    """Empty buckets are left out."""
    end: tuple[int, int, int]
    """Cursor for the next call."""
    since: int
    """Number of the first bucket that is complete."""
