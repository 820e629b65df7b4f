"""Statistics poller: counts for the overview, independent of the view, while data changes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from textual.message import Message

from draftsman.entities.workers import health_of
from draftsman.errors import DraftsmanError
from draftsman.jobs.details.stats import RecentActivity
from draftsman_tui.dashboard.frame import dashboard_stats
from draftsman_tui.dashboard.frame.connection import Connection, DatabaseClock
from draftsman_tui.dashboard.frame.messages import StatsUpdated

ACTIVE_INTERVAL: Final = 2.0
"""Seconds between counts while data changes."""
REST_FACTOR: Final = 50
"""Pause after a count as a multiple of its duration: at most 2 % of a core."""
IDLE_INTERVAL: Final = 10.0
"""Seconds between counts without changes; these omit jobs."""
FULL_COUNT_INTERVAL: Final = 60.0
"""Seconds after which jobs are counted without events."""
_WINDOW: Final = timedelta(minutes=dashboard_stats.WINDOW)


class StatsPoller:
    """Counts for a dashboard, and posts the statistics."""

    def __init__(
        self, connection: Connection, clock: DatabaseClock, post: Callable[[Message], object]
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._post = post
        self._changed = asyncio.Event()
        self._requested = asyncio.Event()
        self._jobs: dict[str, int] = {}
        self._open_failures: dict[str, int] = {}
        self._jobs_at = -FULL_COUNT_INTERVAL
        self._activity: RecentActivity | None = None
        self.last: StatsUpdated | None = None

    @property
    def _window_start(self) -> datetime:
        return self._clock.now - _WINDOW

    def changed(self) -> None:
        """Count soon, after a change."""
        self._changed.set()

    def request(self) -> None:
        """Count without a pause."""
        self._changed.set()
        self._requested.set()

    async def run(self) -> None:
        """Count until canceled, from the first change on; the refresher reports errors."""
        await self._changed.wait()
        while True:
            began = time.monotonic()
            self._requested.clear()
            with contextlib.suppress(DraftsmanError):
                await self.count()
            pause = REST_FACTOR * (time.monotonic() - began)
            # the slow query for the window runs after the first counts are shown
            if self._activity is None:
                with contextlib.suppress(DraftsmanError):
                    await self.load_activity()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(IDLE_INTERVAL, max(ACTIVE_INTERVAL, pause))):
                    await self._requested.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_INTERVAL - ACTIVE_INTERVAL):
                    await self._changed.wait()

    async def count(self) -> None:
        """Count clock skew and workers, and, after a change, jobs and activity."""
        changed = self._changed.is_set() or time.monotonic() - self._jobs_at >= FULL_COUNT_INTERVAL
        self._changed.clear()
        try:
            self._publish(await self._read_stats(changed))
        except DraftsmanError:
            self._changed.set()
            raise

    async def load_activity(self) -> None:
        """Read the activity of the whole window; later counts only add to it."""
        self._activity = await self._connection.rt.read_model.activity(self._window_start)
        if self.last is not None:
            self._publish(replace(self.last.stats, activity=self._activity))

    def _publish(self, stats: dashboard_stats.DashboardStats) -> None:
        self.last = StatsUpdated(stats)
        self._post(self.last)

    async def _read_stats(self, changed: bool) -> dashboard_stats.DashboardStats:
        rt = self._connection.rt
        read_model = rt.read_model
        _, self._clock.skew = await read_model.health()
        if changed:
            self._jobs = await read_model.counts() or {}
            self._open_failures = await read_model.open_failures()
            self._jobs_at = time.monotonic()
        if changed and self._activity is not None:
            newer = await read_model.activity(self._window_start, self._activity.end)
            self._activity = dashboard_stats.merge_activity(self._activity, newer)
        rows = await read_model.workers()
        workers = dashboard_stats.worker_stats(
            [(worker, health_of(worker, rt.settings)) for worker in rows]
        )
        unhandled = sorted({type for _, type in await rt.queues.unhandled_types()})
        return dashboard_stats.DashboardStats(
            self._jobs,
            workers=workers,
            skew=self._clock.skew,
            activity=self._activity,
            unhandled=unhandled,
            open_failures=self._open_failures,
        )
