"""A scheduler whose intervals do not depend on the wall clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from draftsman.processes import clock

TOLERANCE: Final = 0.05
"""Seconds by which the clocks may differ: a wall clock that is corrected is never exact."""


class SteadyScheduler(AsyncIOScheduler):  # type: ignore[misc]
    """Runs jobs at intervals, also across steps of the wall clock, which APScheduler counts by.

    Its timer is monotonic. When it fires, and the wall clock has moved by another amount than the
    monotonic clock, the times of all jobs move along.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, timezone="UTC")
        self._intervals: dict[str, timedelta] = {}
        self._offset = _offset()

    def repeat(self, work: Any, id: str, seconds: float, *args: Any, at_once: bool = False) -> None:
        """Call `work` with these arguments every `seconds`; several late calls are one."""
        self._intervals[id] = timedelta(seconds=seconds)
        first = {"next_run_time": datetime.now(UTC)} if at_once else {}
        self.add_job(
            work,
            "interval",
            args=args,
            seconds=seconds,
            max_instances=1,
            coalesce=True,
            misfire_grace_time=None,
            id=id,
            **first,
        )

    def wakeup(self) -> None:
        """Follow a step of the wall clock, then run the jobs that are due."""
        offset = _offset()
        step = offset - self._offset
        if abs(step) > TOLERANCE:
            self._offset = offset  # first: each change of a job calls this method
            self._move_jobs(timedelta(seconds=step))
        super().wakeup()

    def _move_jobs(self, step: timedelta) -> None:
        """Move the times of all jobs, none by more than its interval from now."""
        now = datetime.now(UTC)
        for job in self.get_jobs():
            if job.next_run_time is not None:
                latest = now + self._intervals[job.id]
                job.modify(next_run_time=min(job.next_run_time + step, latest))


def _offset() -> float:
    return time.time() - clock.now()
