"""Lookups of recent requests like a new one, which may be a mistake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from draftsman.errors import DraftsmanError

if TYPE_CHECKING:
    from draftsman.deliveries.target import Target
    from draftsman.jobs.requests.invocation import RecentDuplicate
    from draftsman.jobs.requests.service.submissions import Submissions
    from draftsman_bots.process.background import BackgroundTasks

WINDOW: Final = 60.0
"""Seconds within which an identical request may be a mistake."""
MAX_LOOKUPS: Final = 100
"""Maximum number of jobs in a query."""
DELAY: Final = 0.1
"""Seconds before a query, so that under load it looks up many jobs."""


class DuplicateLookups:
    """Looks up duplicates of committed jobs, in the background those of many jobs at a time."""

    def __init__(self, submissions: Submissions, background: BackgroundTasks) -> None:
        self._submissions = submissions
        self._background = background
        self._waiting: list[tuple[int, Target, Callable[[RecentDuplicate], None]]] = []
        self._is_running = False

    async def find(self, job: int, target: Target) -> RecentDuplicate | None:
        """Return a recent job with the same invoker, text and target; None if it is unknown."""
        try:
            return (await self._submissions.recent_duplicates([(job, target)], WINDOW))[0]
        except DraftsmanError:
            return None

    def report(self, job: int, target: Target, on_found: Callable[[RecentDuplicate], None]) -> None:
        """Look up a duplicate of the job later, and pass it to `on_found`."""
        self._waiting.append((job, target, on_found))
        if not self._is_running:
            self._is_running = True
            self._background.spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                if len(self._waiting) < MAX_LOOKUPS:
                    await asyncio.sleep(DELAY)
                batch = self._waiting[:MAX_LOOKUPS]
                self._waiting = self._waiting[MAX_LOOKUPS:]
                jobs = [(job, target) for job, target, _ in batch]
                try:
                    duplicates = await self._submissions.recent_duplicates(jobs, WINDOW)
                except DraftsmanError:
                    continue
                for duplicate, (_, _, on_found) in zip(duplicates, batch, strict=True):
                    if duplicate is not None:
                        on_found(duplicate)
        finally:
            self._is_running = False
