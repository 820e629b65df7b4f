"""Counting for the strip: beside the looks at the page, and only while something happens."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from textual.message import Message

from draftsman.errors import DraftsmanError
from draftsman_tui.common.worker_health import health_of
from draftsman_tui.dashboard.polling import dashboard_stats
from draftsman_tui.dashboard.polling.messages import StatsUpdated

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.services.jobs.read_model import Activity

BUSY: Final = 2.0
"""Seconds between two counts while things change."""
SHARE: Final = 50
"""A count is followed by so many times its own length of rest: 2 % of one core at most."""
QUIET: Final = 10.0
"""Seconds between two counts when nothing changes; jobs are left out of them."""
ANYWAY: Final = 60.0
"""Seconds after which jobs are counted though no event told of a change."""
_WINDOW: Final = timedelta(minutes=dashboard_stats.WINDOW)


class StatsPoller:
    """Counts for one dashboard, and posts what it counted."""

    def __init__(self, rt: Runtime, post: Callable[[Message], object]) -> None:
        self.skew = 0.0
        """Seconds that our clock is ahead of the database's."""
        self._rt = rt
        self._post = post
        self._changed = asyncio.Event()
        self._hurried = asyncio.Event()
        self._jobs: tuple[dict[str, int], list[str]] = ({}, [])
        self._jobs_at = -ANYWAY
        self._pulse: Activity | None = None
        self.last: StatsUpdated | None = None

    @property
    def now(self) -> datetime:
        """The time by the database's clock."""
        return datetime.now(UTC) - timedelta(seconds=self.skew)

    def changed(self) -> None:
        """Count soon: something happened."""
        self._changed.set()

    def soon(self) -> None:
        """Count without a rest: what nobody is told of by an event has changed."""
        self._changed.set()
        self._hurried.set()

    async def run(self) -> None:
        """Count until cancelled, from the first change on; who reads the page says what fails."""
        await self._changed.wait()
        while True:
            began = time.monotonic()
            self._hurried.clear()
            with contextlib.suppress(DraftsmanError):
                await self.count()
            rest = SHARE * (time.monotonic() - began)
            if self._pulse is None:  # half an hour is read after the rest is shown
                with contextlib.suppress(DraftsmanError):
                    await self.remember()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(QUIET, max(BUSY, rest))):
                    await self._hurried.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(QUIET - BUSY):
                    await self._changed.wait()

    async def count(self) -> None:
        """Look at clocks and workers, and at jobs and what happened if something did."""
        happened = self._changed.is_set() or time.monotonic() - self._jobs_at >= ANYWAY
        self._changed.clear()
        try:
            self._say(await self._counted(happened))
        except DraftsmanError:
            self._changed.set()
            raise

    async def remember(self) -> None:
        """Read what happened in the last half hour, once; from then on what comes is added."""
        self._pulse = await self._rt.read_model.activity(self.now - _WINDOW)
        if self.last is not None:
            self._say(replace(self.last.vitals, pulse=self._pulse))

    def _say(self, found: dashboard_stats.DashboardStats) -> None:
        self.last = StatsUpdated(found)
        self._post(self.last)

    async def _counted(self, happened: bool) -> dashboard_stats.DashboardStats:
        inspect = self._rt.read_model
        _, self.skew = await inspect.health()
        if happened:
            self._jobs = await inspect.counts()
            self._jobs_at = time.monotonic()
        if happened and self._pulse is not None:
            more = await inspect.activity(self.now - _WINDOW, self._pulse.end)
            self._pulse = dashboard_stats.merge_activity(self._pulse, more)
        found = await inspect.workers()
        crew = dashboard_stats.worker_stats(
            [(one, health_of(one, self._rt.settings)) for one in found]
        )
        return dashboard_stats.DashboardStats(*self._jobs, crew, self.skew, self._pulse)
