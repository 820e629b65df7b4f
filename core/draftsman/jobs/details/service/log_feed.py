"""The log of a job: output of its runs and activity of its agent, in order of time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from draftsman.agent_runs.activity.activity import ActivityRow
from draftsman.agent_runs.activity.log_entries import LogEntry, LogReader
from draftsman.jobs.job import LEASED, TERMINAL, Job

if TYPE_CHECKING:
    from draftsman.agent_runs.activity.service import ActivityStream
    from draftsman.jobs.details.service.read_model import ReadModel
    from draftsman.jobs.runs.saved_data import LogChunk
    from draftsman.jobs.runs.service.checkpoints import Checkpoints

POLL_INTERVAL: Final = 0.3
"""Seconds between polls of a followed log."""
SETTLED: Final = timedelta(seconds=1.2)
"""Age from which items are in order: output and activity are stored within a second."""
PAGE: Final = 500
_END: Final = 2**31 - 1
"""After each item of a run."""


@dataclass(frozen=True, slots=True)
class LogCursor:
    """Position in a log: (run, seq) of the last chunk of output, and of the last activity."""

    output: tuple[int, int] = (0, 0)
    activity: tuple[int, int] = (0, 0)

    @classmethod
    def before_run(cls, run: int) -> LogCursor:
        """Return the position before a run."""
        return cls((run - 1, _END), (run - 1, _END))

    @property
    def run(self) -> int:
        """The run that goes on after it."""
        run, seq = max(self.output, self.activity)
        return run + (seq == _END)

    def after(self, item: Any) -> LogCursor:
        """Return the position after an item."""
        position = (item.run, item.seq)
        if isinstance(item, ActivityRow):
            return LogCursor(self.output, position)
        return LogCursor(position, self.activity)


@dataclass(frozen=True, slots=True)
class _LogPage:
    """Items that were read; `is_complete`: with all that is stored."""

    items: Sequence[Any]
    is_complete: bool
    runs_over: int
    """Runs of the job that had ended before."""


class LogFeed:
    """The logs of jobs for people."""

    def __init__(
        self, read_model: ReadModel, checkpoints: Checkpoints, activity: ActivityStream
    ) -> None:
        self._read_model = read_model
        self._checkpoints = checkpoints
        self._activity = activity

    async def items(
        self, number: int, *, follow: bool, output: bool = True, activity: bool = True
    ) -> AsyncIterator[Any]:
        """Yield chunks of the log and rows of activity by time; `follow`: until the job ends."""
        async for page in self._pages(number, LogCursor(), follow, output, activity):
            for item in page.items:
                yield item

    async def entries(
        self,
        number: int,
        *,
        follow: bool,
        output: bool = True,
        activity: bool = True,
        after: LogCursor = LogCursor(),
        reader: LogReader | None = None,
        on_complete: Callable[[], None] | None = None,
    ) -> AsyncIterator[tuple[LogEntry, LogCursor]]:
        """Yield the entries of a log, each with the position after it; `follow`: until it ends.

        A `reader` has the entries before. `on_complete` is called whenever all that is stored was
        yielded.
        """
        cursor = after
        reader = reader or LogReader()
        reader.begin(after.run)
        async for page in self._pages(number, after, follow, output, activity):
            over = page.runs_over if page.is_complete else 0
            if max([over, *(item.run - 1 for item in page.items)]) > reader.ended:
                reader.know(await self._read_model.runs(number))
            for item in page.items:
                cursor = cursor.after(item)
                for entry in reader.add(item):
                    yield entry, cursor
            if not page.is_complete:
                continue
            if page.runs_over > reader.ended:
                for entry in reader.end_runs(page.runs_over):
                    yield entry, cursor
            if on_complete is not None:
                on_complete()

    async def _pages(
        self, number: int, after: LogCursor, follow: bool, output: bool, activity: bool
    ) -> AsyncIterator[_LogPage]:
        cursor = after
        while True:
            job = await self._read_model.job(number)
            ended = not follow or job.status in TERMINAL
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
            items = sorted((*chunks, *rows), key=_order)
            if horizon is not None:
                items = [item for item in items if _order(item) <= horizon]
            is_held = False
            if settled is not None:
                held = next(
                    (nth for nth, item in enumerate(items) if item.created_at > settled), None
                )
                is_held = held is not None
                items = items[:held]
            for item in items:
                cursor = cursor.after(item)
            is_complete = not full and not is_held
            yield _LogPage(items, is_complete, _runs_over(job))
            if not full or is_held:
                if ended:
                    return
                await asyncio.sleep(POLL_INTERVAL)

    async def tail(self, number: int, limit: int) -> tuple[list[LogEntry], LogCursor]:
        """Return the newest entries of a job, of `limit` chunks and rows each, and their end."""
        job = await self._read_model.job(number)
        chunks = await self._checkpoints.log_end(number, limit=limit)
        rows = await self._activity.newest(number, limit=limit)
        cursor = LogCursor()
        reader = LogReader()
        entries: list[LogEntry] = []
        items: list[LogChunk | ActivityRow] = sorted((*chunks, *rows), key=_order)
        reader.begin(items[0].run if items else 1)
        reader.know(await self._read_model.runs(number))
        for item in items:
            cursor = cursor.after(item)
            entries += reader.add(item)
        entries += reader.end_runs(_runs_over(job))
        return entries, cursor

    async def reader(self, number: int, limit: int, after: LogCursor) -> LogReader:
        """Return a reader that knows the newest rows of activity up to a position."""
        reader = LogReader()
        for row in await self._activity.newest(number, limit=limit):
            if (row.run, row.seq) <= after.activity:
                reader.add(row)
        return reader


def _runs_over(job: Job) -> int:
    """Return how many runs of a job have ended."""
    return job.run_count - (job.status in LEASED)


def _order(item: Any) -> tuple[int, datetime, int]:
    return item.run, item.created_at, item.seq
