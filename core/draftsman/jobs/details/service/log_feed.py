"""The log of a job: output of its runs and activity of its agent, in order of time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.jobs.job import TERMINAL

if TYPE_CHECKING:
    from draftsman.agent_runs.activity.service import ActivityStream
    from draftsman.jobs.details.service.read_model import ReadModel
    from draftsman.jobs.runs.service.checkpoints import Checkpoints

POLL_INTERVAL: Final = 0.3
"""Seconds between polls of a followed log."""
SETTLED: Final = timedelta(seconds=1.2)
"""Age from which items are in order: output and activity are stored within a second."""
PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Position in a log: (run, seq) of the last chunk of output, and of the last activity."""

    output: tuple[int, int] = (0, 0)
    activity: tuple[int, int] = (0, 0)

    def after(self, item: Any) -> LogCursor:
        """Return the position after an item."""
        position = (item.run, item.seq)
        if isinstance(item, ActivityRow):
            return LogCursor(self.output, position)
        return LogCursor(position, self.activity)


class LogFeed:
    """The logs of jobs for people."""

    def __init__(
        self, read_model: ReadModel, checkpoints: Checkpoints, activity: ActivityStream
    ) -> None:
        self._read_model = read_model
        self._checkpoints = checkpoints
        self._activity = activity

    async def items(
        self,
        number: int,
        *,
        follow: bool,
        output: bool = True,
        activity: bool = True,
        after: LogCursor = LogCursor(),
        on_complete: Callable[[], None] | None = None,
    ) -> AsyncIterator[Any]:
        """Yield chunks of the log and rows of activity of a job by time; `follow`: until it ends.

        `on_complete` is called whenever all that is stored was yielded.
        """
        cursor = after
        while True:
            ended = not follow or (await self._read_model.job(number)).status in TERMINAL
            chunks: Sequence[Any] = ()
            rows: Sequence[Any] = ()
            if output:
                chunks = await self._checkpoints.logs(number, cursor.output, PAGE)
            if activity:
                rows = await self._activity.page(number, cursor.activity, PAGE)
            full = [page for page in (chunks, rows) if len(page) == PAGE]
            horizon = min((_order(page[-1]) for page in full), default=None)
            settled = None
            if output and activity and not ended and (chunks or rows):
                settled = await self._checkpoints.now() - SETTLED
            complete = not full
            for item in sorted((*chunks, *rows), key=_order):
                if horizon is not None and _order(item) > horizon:
                    break
                if settled is not None and item.created_at > settled:
                    full = []
                    complete = False
                    break
                cursor = cursor.after(item)
                yield item
            if not full:
                if ended:
                    return
                if on_complete is not None and complete:
                    on_complete()
                await asyncio.sleep(POLL_INTERVAL)

    async def tail(self, number: int, limit: int) -> tuple[list[Any], LogCursor]:
        """Return the newest chunks and rows of a job, at most `limit` of each, and their end."""
        chunks = await self._checkpoints.log_end(number, limit=limit)
        rows = await self._activity.newest(number, limit=limit)
        items = sorted((*chunks, *rows), key=_order)
        cursor = LogCursor()
        for item in items:
            cursor = cursor.after(item)
        return items, cursor


def _order(item: Any) -> tuple[int, datetime, int]:
    return item.run, item.created_at, item.seq
