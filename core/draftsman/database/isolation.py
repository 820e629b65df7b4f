"""Rows that the database refuses, kept from blocking the other rows of a sweep or a claim."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from draftsman.database.database import Connection, Database
from draftsman.database.selection import Selection
from draftsman.errors import Conflict, DraftsmanError
from draftsman.ids import job_name

FIRST_PAUSE: Final = 10.0
"""Seconds for which a row is set aside after its first refusal; after each further one, twice as
many."""
LONGEST_PAUSE: Final = 600.0
FORGOTTEN: Final = 3600.0
"""Seconds after its pause in which a row is remembered: its next refusal is not its first."""
MAX_REFUSED: Final = 50
"""Refusals after which a batch is given up: the cause is hardly its rows."""
Item = TypeVar("Item")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Refusal:
    """How long a row is set aside, and until when, a time of `time.monotonic`."""

    pause: float
    until: float


def is_refusal(error: Exception) -> bool:
    """Return whether an error may be due to a row: neither an outage nor a conflict nor a lock."""
    if not isinstance(error, DraftsmanError):
        return True
    return not (error.is_outage or error.is_temporary or isinstance(error, Conflict))


async def run_all(*steps: Callable[[], Awaitable[int | None]]) -> int:
    """Run the steps of a sweep, each although an earlier one failed; return the sum of the results.

    Raises the first error at the end, but an outage at once.
    """
    total = 0
    errors = list[Exception]()
    for step in steps:
        try:
            total += await step() or 0
        except Exception as error:
            if isinstance(error, DraftsmanError) and error.is_outage:
                raise
            errors.append(error)
    if errors:
        raise errors[0]
    return total


class Isolation:
    """Repeats the batch of a sweep that the database refuses in ever smaller parts.

    A row that is refused alone is logged once and set aside for a while; all others are changed.
    Rows are known by the numbers of their jobs, or by those that `named` turns into a name.
    """

    def __init__(self, db: Database, sweep: str, named: Callable[[int], str] = job_name) -> None:
        self.sweep: Final = sweep
        self._db = db
        self._named = named
        self._refusals: dict[int, _Refusal] = {}

    @property
    def aside(self) -> list[int]:
        """The rows that are set aside now."""
        if not self._refusals:
            return []
        now = time.monotonic()
        self._refusals = {
            row: refusal
            for row, refusal in self._refusals.items()
            if refusal.until + FORGOTTEN > now
        }
        return [row for row, refusal in self._refusals.items() if refusal.until > now]

    async def run(
        self,
        work: Callable[[Connection, Selection], Awaitable[int]],
        candidates: Callable[[Connection, Selection], Awaitable[Sequence[int]]],
    ) -> int:
        """Do `work` in a transaction; return the number of rows that it changed.

        If it is refused, `candidates` names its rows, and it is done in batches.
        """
        selection = Selection(without=self.aside)
        try:
            return await self._db.run_transaction(lambda conn: work(conn, selection))
        except Exception as error:
            if not is_refusal(error):
                raise
            async with self._db.connection() as conn:
                rows = await candidates(conn, selection)
            if not rows:
                raise
        return await self._in_batches(rows, work)

    async def each(
        self, items: Iterable[tuple[int, Item]], work: Callable[[Item], Awaitable[int]]
    ) -> int:
        """Do `work` for each item with the row before it; return the sum of its results."""
        aside = set(self.aside)
        total = 0
        for row, item in items:
            if row in aside:
                continue
            try:
                total += await work(item)
            except Exception as error:
                if not is_refusal(error):
                    raise
                self._set_aside(row, error)
            else:
                self._refusals.pop(row, None)
        return total

    async def _in_batches(
        self, rows: Sequence[int], work: Callable[[Connection, Selection], Awaitable[int]]
    ) -> int:
        batches = [rows]
        changed = 0
        refused = 0
        while batches:
            batch = batches.pop()
            try:
                changed += await self._run_batch(batch, work)
            except Exception as error:
                if not is_refusal(error):
                    raise
                if len(batch) == 1:
                    self._set_aside(batch[0], error)
                    refused += 1
                    if refused >= MAX_REFUSED:
                        raise
                else:
                    half = len(batch) // 2
                    batches += [batch[half:], batch[:half]]
        return changed

    async def _run_batch(
        self, rows: Sequence[int], work: Callable[[Connection, Selection], Awaitable[int]]
    ) -> int:
        selection = Selection(only=list(rows))
        changed = await self._db.run_transaction(lambda conn: work(conn, selection))
        for row in rows:
            self._refusals.pop(row, None)
        return changed

    def _set_aside(self, row: int, error: Exception) -> None:
        former = self._refusals.get(row)
        pause = FIRST_PAUSE if former is None else min(LONGEST_PAUSE, former.pause * 2)
        self._refusals[row] = _Refusal(pause, time.monotonic() + pause)
        level = logging.ERROR if former is None else logging.DEBUG
        text = "%s: the database refuses %s, which is tried again from time to time: %s"
        _log.log(level, text, self.sweep, self._named(row), error)
