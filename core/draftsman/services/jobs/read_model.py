"""What people look at: jobs, trails, workers, why a job waits, whether the data is sound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from draftsman.domain.event import Event
from draftsman.domain.ids import JobRef
from draftsman.domain.job import TERMINAL, WAITING, Job, Status
from draftsman.domain.run import Run
from draftsman.domain.wait_reason import WaitReason, expiring_question, explain
from draftsman.errors import CommandHint, NotFound, UsageError
from draftsman.store import questions, workers
from draftsman.store import read_model as store
from draftsman.store.postgres.database import Database, translate_errors
from draftsman.store.postgres.notifications import receives_notifications
from draftsman.store.read_model import ActivityBucket as ActivityBucket  # of `pulse`
from draftsman.store.read_model import JobSummary as JobSummary  # of `page`, for those who show it
from draftsman.store.read_model import RetryLink as RetryLink  # of `chain`

FOLLOW_INTERVAL: Final = 0.2
"""Seconds between two looks of something that follows."""
PAGE_SIZE: Final = 200
SCAN_LIMIT: Final = 100_000
"""Numbers that one call looks through for an agent, a repository, a tag or an invoker: a tenth of
a second."""
COUNT_LIMIT: Final = 10_000
"""Jobs of a terminal status that are counted; more are `at least` so many."""
BUCKET_SECONDS: Final = 10
"""Seconds of a span of a pulse."""
ACTIVITY_PAGE_SIZE: Final = 20_000
"""Events that one query of a pulse reads: a few hundredths of a second."""
ACTIVITY_MAX_PAGES: Final = 20
"""Queries of a pulse at most: what is before so many events is not known."""
MAX_NUMBER: Final = 2**62
"""A number that no job and no epoch reaches."""
NOTIFICATION_TIMEOUT: Final = 2.0
"""Seconds that a notification to ourselves may take."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first; `looked_to` is where the look ended before the page was full."""

    jobs: list[store.JobSummary]
    scanned_to: int | None = None
    """Ask for what is before this number to look further; None: there is no more, or a full page
    ends with its last job."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of everything; `answer_seconds` is the median of the last day.

    Jobs that have ended only grow in number: those in `at_least` were counted to 10,000.
    """

    jobs: dict[str, int]
    at_least: list[str]
    open_questions: int
    expiring_within_an_hour: int
    next_expiry: datetime | None
    workers: int
    slots: int
    busy: int
    answers_last_day: int
    answer_seconds: float | None


@dataclass(frozen=True, slots=True)
class Activity:
    """What happened of late: `spans` of ten seconds, by their number since the epoch."""

    spans: dict[int, ActivityBucket]
    """Where nothing happened there is none."""
    end: store.EventCursor
    """What to ask after for what comes then."""
    since: int
    """From this span on all of them are known."""


class ReadModel:
    """Reads. Nothing here changes a row."""

    def __init__(self, db: Database, lease: float) -> None:
        self._db = db
        self._lease = lease

    async def resolve(self, ref: JobRef) -> int:
        """Return the number of the job that was named; raises NotFound, UsageError (ambiguous)."""
        async with self._db.connection() as conn:
            if ref.number is not None:
                if await store.status(conn, ref.number) is None:
                    raise NotFound(f"there is no job D-{ref.number}", hint=CommandHint("jobs"))
                return ref.number
            found = await store.find(conn, ref.lowest, ref.highest)
        if not found:
            raise NotFound(f"no job's id starts with {ref.text!r}", hint=CommandHint("jobs"))
        if len(found) > 1:
            raise UsageError(f"several jobs' ids start with {ref.text!r}; give more of it")
        return found[0]

    async def job(self, number: int) -> Job:
        """Return one job; raises NotFound."""
        async with self._db.connection() as conn:
            found = await store.get(conn, number)
        if found is None:
            raise NotFound(f"there is no job D-{number}", hint=CommandHint("jobs"))
        return found

    async def status_and_version(self, number: int) -> tuple[Status, int]:
        """Return a job's status and version, which grows with each step; raises NotFound."""
        async with self._db.connection() as conn:
            found = await store.status_and_version(conn, number)
        if found is None:
            raise NotFound(f"there is no job D-{number}", hint=CommandHint("jobs"))
        return found

    async def jobs(self, **filters: Any) -> list[store.JobSummary]:
        """Return the jobs of a page."""
        return (await self.page(**filters)).jobs

    async def page(
        self,
        *,
        statuses: Sequence[Status] | None = None,
        agent: str | None = None,
        repo: str | None = None,
        tag: str | None = None,
        invoker: str | None = None,
        since: datetime | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> JobPage:
        """Return jobs, newest first; `before` is the number that the last page ended with.

        An agent, a repository, a tag or an invoker, as `Actor.voter` names them, is looked for
        among 100,000 numbers at a time.
        """
        wanted = [str(item) for item in (Status if statuses is None else statuses)]
        sought = {"agent": agent, "repo": repo, "tag": tag, "invoker": invoker}
        filters: dict[str, Any] = {**sought, "since": since}
        async with self._db.connection() as conn:
            end = await store.newest(conn) + 1 if before is None else before
            first = 0 if since is None else await store.first_since(conn, since)
            lowest = max(first, end - SCAN_LIMIT) if any(sought.values()) else first
            limits = {"statuses": wanted, "before": end, "lowest": lowest, "limit": limit}
            found = await store.page(conn, filters | limits)
        return JobPage(found, lowest if len(found) < limit and lowest > max(first, 1) else None)

    async def runs(self, number: int) -> list[Run]:
        """Return the runs of a job."""
        async with self._db.connection() as conn:
            return await store.runs(conn, number)

    async def latest_runs(
        self, before: tuple[int, int] | None = None, limit: int = PAGE_SIZE
    ) -> list[Run]:
        """Return runs of all jobs before (job, ordinal), the newest job's first."""
        async with self._db.connection() as conn:
            return await store.latest_runs(conn, before or (MAX_NUMBER, 0), limit)

    async def job_events(self, number: int, after: int = 0, limit: int = PAGE_SIZE) -> list[Event]:
        """Return one job's events after an event id."""
        async with self._db.connection() as conn:
            return await store.job_events(conn, number, after, limit)

    async def latest_job_events(
        self, number: int, after: int = 0, limit: int = PAGE_SIZE
    ) -> list[Event]:
        """Return one job's newest events after an event id, in their order."""
        async with self._db.connection() as conn:
            return (await store.latest_job_events(conn, number, after, limit))[::-1]

    async def events(
        self, cursor: tuple[int, int, int] = (0, 0, 0), limit: int = PAGE_SIZE
    ) -> list[Event]:
        """Return everybody's events after a cursor (epoch, txid, id); none is ever skipped."""
        async with self._db.connection() as conn:
            return await store.events(conn, cursor, limit)

    async def latest_events(
        self, before: tuple[int, int, int] | None = None, limit: int = PAGE_SIZE
    ) -> list[Event]:
        """Return everybody's events before a cursor, the newest first."""
        async with self._db.connection() as conn:
            return await store.latest_events(conn, before or (MAX_NUMBER, 0, 0), limit)

    async def end_cursor(self) -> tuple[int, int, int]:
        """Return the cursor behind which only new events come."""
        async with self._db.connection() as conn:
            return await store.end_cursor(conn)

    async def follow(
        self, number: int | None, *, new: bool = False, after: tuple[int, int, int] | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they come: of one job until it ends, or of all, for ever.

        `new` leaves out what was there before, `after` what was there up to a cursor.
        """
        if number is not None:
            async for event in self._follow_job(number, new, after):
                yield event
            return
        cursor = after or (await self.end_cursor() if new else (0, 0, 0))
        while True:
            events = await self.events(cursor)
            for event in events:
                cursor = event.cursor
                yield event
            if len(events) < PAGE_SIZE:
                await asyncio.sleep(FOLLOW_INTERVAL)

    async def wait(self, number: int, *, questions_too: bool = False) -> Status:
        """Return the status once the job ended, or, if wanted, waits for a person."""
        stops = TERMINAL | (WAITING if questions_too else frozenset())
        async for status in self.statuses(number):
            if status in stops:
                return status
        raise AssertionError("a job's statuses have no end before its own")

    async def statuses(self, number: int) -> AsyncIterator[Status]:
        """Yield a job's status, and again when it has moved, until it ended; raises NotFound.

        Statuses that it only passes between two looks are left out.
        """
        seen: tuple[Status, int] | None = None
        while seen is None or seen[0] not in TERMINAL:
            async with self._db.connection() as conn:
                stand = await store.status_and_version(conn, number)
            if stand is None:
                raise NotFound(f"there is no job D-{number}", hint=CommandHint("jobs"))
            if stand == seen:
                await asyncio.sleep(FOLLOW_INTERVAL)
                continue
            seen = stand
            yield stand[0]

    async def workers(self) -> list[workers.RegisteredWorker]:
        """Return every registered worker."""
        async with self._db.connection() as conn:
            return await workers.all_workers(conn)

    async def why(self, number: int) -> WaitReason:
        """Return what a job waits for, from the claim's own view; raises NotFound."""
        async with self._db.connection() as conn, conn.transaction():
            facts = await store.why(conn, number, self._lease)
            if facts is not None and facts.status is Status.EXPIRED:
                question = expiring_question(await questions.of_job(conn, number))
            else:
                question = next(iter(await questions.open_of(conn, [number])), None)
        if facts is None:
            raise NotFound(f"there is no job D-{number}", hint=CommandHint("jobs"))
        return explain(facts, question)

    async def chain(self, number: int) -> list[RetryLink]:
        """Return the chain of retries that a job is in, the request first; itself alone, too."""
        async with self._db.connection() as conn:
            return await store.chain(conn, number)

    async def stats(self) -> Stats:
        """Return counts of everything."""
        counts, often = await self.counts()
        async with self._db.connection() as conn:
            asked, soon, following = await store.open_counts(conn)
            answers, seconds = await store.answer_times(conn)
            live = [w for w in await workers.all_workers(conn) if w.silent < self._lease]
        return Stats(
            counts,
            often,
            asked,
            soon,
            following,
            len(live),
            sum(worker.slots for worker in live),
            sum(worker.busy for worker in live),
            answers,
            seconds,
        )

    async def counts(self) -> tuple[dict[str, int], list[str]]:
        """Return how many jobs each status has, and of which there are at least so many."""
        async with self._db.connection() as conn:
            counts = await store.counts(conn, COUNT_LIMIT)
        often = [str(status) for status in Status if _ended_often(status, counts)]
        return {str(status): counts.get(status, 0) for status in Status}, often

    async def activity(self, since: datetime, after: store.EventCursor | None = None) -> Activity:
        """Return what happened since a time, or after the end of the last pulse.

        It reads the events that came since then, and no other: at most the last 400,000.
        """
        first = int(since.timestamp()) // BUCKET_SECONDS
        spans: dict[int, ActivityBucket] = {}
        end = before = await self.end_cursor()
        for _ in range(ACTIVITY_MAX_PAGES):
            async with self._db.connection() as conn:
                found, rest = await store.activity(
                    conn, after or (0, 0, 0), before, BUCKET_SECONDS, ACTIVITY_PAGE_SIZE
                )
            for span in found:
                spans[span.at] = span + spans.get(span.at)
            if rest is None or any(span.at < first for span in found):
                return Activity(spans, end, first)
            before = rest
        return Activity(spans, end, min(spans) + 1)

    async def health(self) -> tuple[store.ServerHealth, float]:
        """Return what the server says of itself, and by how many seconds our clock is ahead."""
        async with self._db.connection() as conn:
            before = time.time()
            found = await store.health(conn)
            return found, (before + time.time()) / 2 - found.clock

    async def receives_notifications(self, url: str | None = None) -> bool:
        """Return whether notifications arrive on a session of this URL (None: the database's)."""
        connection = await self._db.dedicated_connection(url)
        try:
            with translate_errors():
                return await receives_notifications(connection, NOTIFICATION_TIMEOUT)
        finally:
            await connection.close()

    async def invariants(self) -> dict[str, Sequence[tuple[Any, ...]]]:
        """Return, for each invariant of the data, the rows that break it."""
        async with self._db.connection() as conn:
            return await store.invariants(conn)

    async def _follow_job(
        self, number: int, new: bool, after: tuple[int, int, int] | None
    ) -> AsyncIterator[Event]:
        last = after[2] if after else 0
        if new:
            while events := await self.job_events(number, last):
                last = events[-1].id
        while True:
            ended = (await self.job(number)).status in TERMINAL
            events = await self.job_events(number, last)
            for event in events:
                last = event.id
                yield event
            if len(events) < PAGE_SIZE:
                if ended:
                    return
                await asyncio.sleep(FOLLOW_INTERVAL)


def _ended_often(status: Status, counts: dict[str, int]) -> bool:
    return status in TERMINAL and counts.get(status, 0) >= COUNT_LIMIT
