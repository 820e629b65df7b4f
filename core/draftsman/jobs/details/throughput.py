"""Throughput, waiting and run times of the jobs that finished in a period. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

BARS: Final = 24
"""Intervals of a period whose finished jobs are counted."""


class Period(StrEnum):
    """The time before now in which jobs finished."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def seconds(self) -> float:
        """Its length."""
        return {Period.HOUR: 3600.0, Period.DAY: 86_400.0, Period.WEEK: 7 * 86_400.0}[self]


class ThroughputGroup(StrEnum):
    """What the jobs of a row have in common."""

    ALL = "all"
    QUEUE = "queue"
    TYPE = "type"
    REPO = "repo"


@dataclass(frozen=True, slots=True)
class Throughput:
    """The jobs of a queue, type or repository that finished in a period; times are in seconds."""

    period: Period
    by: ThroughputGroup
    value: str
    """The queue, type or repository; empty for all jobs."""
    finished: int
    """Jobs that finished, with any status."""
    failed: int
    """Jobs of these that failed or are dead letters."""
    covered: float
    """Length of the part of the period that was read: its end, if there were too many events."""
    bars: list[int | None]
    """Jobs that finished in each 24th of the period, newest last; None: it was not read."""
    wait_bars: list[float | None]
    """Median time in the queue of those jobs; None: there are none, or it was not read."""
    run_bars: list[float | None]
    """Median time of all runs of those jobs, likewise."""
    wait_p50: float | None
    """Median time from when a job was last queued until a worker claimed it."""
    wait_p95: float | None
    run_p50: float | None
    """Median time of all runs of a job."""
    run_p95: float | None

    @property
    def per_hour(self) -> float:
        """Finished jobs in an hour."""
        return self.finished * 3600 / self.covered if self.covered else 0.0


def throughput_of(
    period: Period,
    *,
    by: str,
    bars: Sequence[tuple[int, int, float | None, float | None]],
    covered: float | None,
    **row: Any,
) -> Throughput:
    """Return a row of a query; `covered` is None if the whole period was read.

    `bars` have their numbers, newest first from 0, with jobs, median wait and median run.
    """
    covered = period.seconds if covered is None else covered
    read = math.ceil(BARS * covered / period.seconds)
    counts: list[int | None] = [*[None] * (BARS - read), *[0] * read]
    waits: list[float | None] = [None] * BARS
    runs: list[float | None] = [None] * BARS
    for number, count, wait, run in bars:
        if number < read:
            at = BARS - 1 - int(number)
            counts[at] = int(count)
            waits[at] = wait
            runs[at] = run
    return Throughput(
        period=period,
        by=ThroughputGroup(by),
        covered=covered,
        bars=counts,
        wait_bars=waits,
        run_bars=runs,
        **row,
    )
