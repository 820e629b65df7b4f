"""Queries behind the front ends: jobs, events, workers, wait reasons and data checks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from draftsman.database import schema
from draftsman.database.database import Connection, Database, on_connection, translate_errors
from draftsman.database.notification_listener import receives_notifications
from draftsman.database.server_health import ServerHealth
from draftsman.errors import CommandHint, NotFound, UsageError
from draftsman.events.event import PAGE_SIZE, Event
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.ids import JobRef, unknown_job
from draftsman.jobs.control import store as control
from draftsman.jobs.details import store
from draftsman.jobs.details.service import selected_page
from draftsman.jobs.details.service.waiting import wait_reason
from draftsman.jobs.details.stats import ActivityBucket, RecentActivity, Stats
from draftsman.jobs.details.wait_reason import WaitReason
from draftsman.jobs.event_kinds import COMMON_KINDS
from draftsman.jobs.job import CLAIMABLE, FAILURES, TERMINAL, WAITING, Job, Status
from draftsman.jobs.job_summary import (
    JobFilters,
    JobPage,
    JobSummary,
    JobVersion,
    Replacement,
)
from draftsman.jobs.pending_decisions import store as pending_decisions
from draftsman.jobs.runs.run import Run
from draftsman.jobs.runs.store import run_state
from draftsman.questions.store import questions
from draftsman.worker.registry import store as workers
from draftsman.worker.registry.registered_worker import (
    RegisteredWorker,
    ServingWorker,
    missing_worker,
)

if TYPE_CHECKING:
    from draftsman.jobs.details.job_details import JobDetails

FOLLOW_INTERVAL: Final = 0.2
"""Poll interval of followed events and statuses, in seconds."""
JOBS_LIMIT: Final = 50
"""Default number of jobs of a page."""
SCAN_LIMIT: Final = 100_000
"""Job numbers that a call scans for an agent, tag, … that no index has, in a tenth of a second."""
SCANNED: Final = ("agent", "repo", "type", "queue", "source", "tags", "invoker")
"""Filters of jobs without an index."""
NewestValue = Literal["agent", "repo", "type", "tag", "invoker"]
"""A field of jobs whose values are listed."""
VALUES_LIMIT: Final = 5000
"""Newest job numbers whose values are listed."""
CLOCK_DIFFERENCES: Final = timedelta(hours=2)
"""By how much an older job may have a higher number, twice: `first_since` subtracts an hour."""
BUCKET_SECONDS: Final = 10
"""Length of an activity bucket, in seconds."""
ACTIVITY_PAGE_SIZE: Final = 20_000
"""Events that a query of the activity reads, in a few hundredths of a second."""
ACTIVITY_MAX_PAGES: Final = 20
"""Maximum number of queries for an activity; earlier events are left out."""
MAX_NUMBER: Final = 2**62
"""Above every job number and epoch."""
NOTIFICATION_TIMEOUT: Final = 2.0
"""Seconds to wait for a notification sent to our own session."""


class ReadModel:
    """Read-only queries."""

    def __init__(self, db: Database, lease: float) -> None:
        self._db = db
        self._lease = lease

    async def resolve(self, ref: JobRef) -> int:
        """Return the number of the referenced job; raises NotFound, UsageError (ambiguous)."""
        async with self._db.connection() as conn:
            if ref.number is not None:
                if await store.version(conn, ref.number) is None:
                    raise unknown_job(ref.number)
                return ref.number
            numbers = await store.find(conn, ref.lowest, ref.highest)
        if not numbers:
            raise NotFound(f"no job id starts with {ref.text!r}", hint=CommandHint("jobs"))
        if len(numbers) > 1:
            raise UsageError(f"several job ids start with {ref.text!r}; give more characters")
        return numbers[0]

    async def job(self, number: int) -> Job:
        """Return a job; raises NotFound."""
        async with self._db.connection() as conn:
            job = await store.get(conn, number)
        if job is None:
            raise unknown_job(number)
        return job

    async def version(self, number: int) -> JobVersion:
        """Return the status and version of a job; raises NotFound."""
        async with self._db.connection() as conn:
            version = await store.version(conn, number)
        if version is None:
            raise unknown_job(number)
        return version

    sources = on_connection(store.sources)

    async def newest_values(self, field: NewestValue) -> list[str]:
        """Return the values that the newest 5,000 jobs have in a field, each once."""
        async with self._db.connection() as conn:
            lowest = await store.newest(conn) - VALUES_LIMIT
            return await store.newest_values(conn, field, lowest)

    async def jobs(self, **filters: Unpack[JobFilters]) -> list[JobSummary]:
        """Return the jobs of `page`."""
        return (await self.page(**filters)).jobs

    async def page(self, **filters: Unpack[JobFilters]) -> JobPage:
        """Return jobs, newest first, after `before`.

        Jobs of statuses that wait for people are in the order of their deadlines instead. With a
        filter that no index has, a call scans at most 100,000 numbers.
        """
        limit = filters.get("limit", JOBS_LIMIT)
        async with self._db.connection() as conn:
            scan = await _scan_of(conn, filters)
            params = scan.params | {"limit": limit}
            if selected_page.is_selected(filters) or selected_page.is_by_deadline(filters):
                jobs, last = await selected_page.page(conn, filters, params, SCAN_LIMIT)
                return JobPage(await selected_page.with_retries(conn, jobs), last)
            jobs = await store.page(conn, params)
            jobs = await selected_page.with_retries(conn, jobs)
        return JobPage(jobs, scan.scanned_to if len(jobs) < limit else None)

    async def counts(self, **filters: Unpack[JobFilters]) -> dict[str, int] | None:
        """Return the number of jobs by status that match filters, at most `COUNT_LIMIT` of each.

        None if that cannot be counted: for filters that an index selects by, and if the newest
        100,000 numbers of a filter that no index has are not all jobs.
        """
        if selected_page.is_selected(filters):
            return None
        async with self._db.connection() as conn:
            scan = await _scan_of(conn, filters)
            if scan.scanned_to is not None:
                return None
            counts = await store.counts(conn, scan.params, COUNT_LIMIT)
        return {str(status): counts.get(status, 0) for status in Status}

    async def with_figures(self, jobs: Sequence[JobSummary]) -> list[JobSummary]:
        """Return jobs with their cost, changes, progress, open questions and lack of a worker.

        Also with an answer, decision or cancel that can still be undone.
        """
        from draftsman.agent_runs.activity import store as activity
        from draftsman.agent_runs.activity.activity import AgentProgress
        from draftsman.deliveries.action_text import action_text

        started = [job.number for job in jobs if job.run_count]
        running = [job.number for job in jobs if job.status is Status.RUNNING]
        waiting = [job.number for job in jobs if job.status in WAITING]
        unfinished = [job.number for job in jobs if job.status not in TERMINAL]
        claimable = any(job.status in CLAIMABLE and job.hold is None for job in jobs)
        progress = {number: AgentProgress() for number in running}
        async with self._db.connection() as conn:
            figures = {item.number: item for item in await activity.figures(conn, started)}
            for number, row in await activity.latest(conn, running) if running else ():
                progress[number].add(row)
            open_questions = await questions.asked(conn, waiting) if waiting else []
            serving = await workers.serving(conn, self._lease) if claimable else []
            held = await pending_decisions.of_jobs(conn, unfinished) if unfinished else []
        for number, text, action, expires_at in open_questions:
            if number in figures:
                asks = action_text(action) if action else text
                earlier = figures[number].asks
                asks = f"{earlier}; {asks}" if earlier else asks
                until = min(filter(None, (figures[number].asks_until, expires_at)), default=None)
                figures[number] = replace(figures[number], asks=asks, asks_until=until)
        for number, line in progress.items():
            if number in figures:
                figures[number] = replace(figures[number], progress=line.text)
        decisions = {decision.job: decision.held for decision in held}
        return [
            replace(
                job,
                figures=figures.get(job.number),
                hold=_hold(job, serving),
                decision=decisions.get(job.number),
            )
            for job in jobs
        ]

    runs = on_connection(run_state.runs)

    async def latest_runs(
        self, before: tuple[int, int] | None = None, limit: int = PAGE_SIZE
    ) -> list[Run]:
        """Return runs of all jobs before (job, ordinal), newest job first."""
        async with self._db.connection() as conn:
            return await store.latest_runs(conn, before or (MAX_NUMBER, 0), limit)

    job_events = on_connection(store.job_events)

    async def latest_job_events(
        self, number: int, after: int = 0, limit: int = PAGE_SIZE
    ) -> list[Event]:
        """Return the newest events of a job after an event id, oldest first."""
        async with self._db.connection() as conn:
            return (await store.latest_job_events(conn, number, after, limit))[::-1]

    events = on_connection(store.events)

    async def events_of_kinds(
        self,
        kinds: Sequence[str],
        cursor: tuple[int, int, int] = (0, 0, 0),
        limit: int = PAGE_SIZE,
    ) -> tuple[list[Event], tuple[int, int, int] | None]:
        """Return events of some kinds after a cursor, and the cursor of the next call.

        None as cursor: there are no more. Kinds that most jobs have are filtered from the feed.
        """
        async with self._db.connection() as conn:
            if COMMON_KINDS.isdisjoint(kinds):
                page = await store.events_of_kinds(conn, kinds, cursor, limit)
                matching = page
            else:
                page = await store.events(conn, cursor, limit)
                matching = [event for event in page if event.kind in kinds]
        return matching, page[-1].cursor if len(page) == limit else None

    async def cursor_before(self, since: datetime) -> tuple[int, int, int]:
        """Return a cursor up to which all events are older; some older events may follow."""
        async with self._db.connection() as conn:
            epoch, txid = await store.txid_before(conn, since)
        return (epoch, txid, MAX_NUMBER) if txid else (0, 0, 0)

    async def latest_events(
        self, before: tuple[int, int, int] | None = None, limit: int = PAGE_SIZE
    ) -> list[Event]:
        """Return the events of all jobs before a cursor, newest first."""
        async with self._db.connection() as conn:
            return await store.latest_events(conn, before or (MAX_NUMBER, 0, 0), limit)

    end_cursor = on_connection(store.end_cursor)

    async def follow(
        self, number: int | None, *, new: bool = False, after: tuple[int, int, int] | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they occur: of a job until it finishes, or of all jobs forever.

        `new` skips existing events, `after` the events up to a cursor.
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
        """Return the status once the job finished or, with `questions_too`, waits for a person."""
        stops = TERMINAL | (WAITING if questions_too else frozenset())
        async for status in self.statuses(number):
            if status in stops:
                return status
        raise AssertionError("a job's statuses have no end before its own")

    async def ends(self, numbers: Sequence[int]) -> AsyncIterator[int]:
        """Yield each of these jobs once it ended."""
        left = dict.fromkeys(numbers)
        while left:
            async with self._db.connection() as conn:
                ended = await store.ended(conn, [*left])
            for number in ended:
                del left[number]
                yield number
            if left:
                await asyncio.sleep(FOLLOW_INTERVAL)

    async def statuses(self, number: int) -> AsyncIterator[Status]:
        """Yield the status of a job on each change until it finishes; raises NotFound.

        Statuses between two polls are skipped.
        """
        last = 0
        async for current in self.versions(number):
            if current.version != last:
                last = current.version
                yield current.status

    async def versions(self, number: int) -> AsyncIterator[JobVersion]:
        """Yield the version of a job on each change and pause until it ends; raises NotFound."""
        last: JobVersion | None = None
        while last is None or last.status not in TERMINAL:
            current = await self.version(number)
            if current == last:
                await asyncio.sleep(FOLLOW_INTERVAL)
                continue
            last = current
            yield current

    async def workers(self) -> list[RegisteredWorker]:
        """Return all registered workers, oldest first."""
        async with self._db.connection() as conn:
            return await workers.all_workers(conn, self._lease)

    async def details(
        self, number: int, *, events: int = PAGE_SIZE, steps: int | None = None
    ) -> JobDetails:
        """Return what people see of a job, read at the same time; raises NotFound.

        With the newest `events` and `steps`; None: as many as its sections show, and one more.
        """
        from draftsman.jobs.details.service import details

        async with self._db.snapshot() as conn:
            return await details.read(conn, number, lease=self._lease, events=events, steps=steps)

    async def why(self, number: int) -> WaitReason:
        """Return the reason why a job waits, from the view that claims use; raises NotFound."""
        async with self._db.snapshot() as conn:
            facts = await store.why(conn, number, self._lease)
            if facts is None:
                raise unknown_job(number)
            if facts.status is Status.EXPIRED:
                return await wait_reason(conn, facts, await questions.of_job(conn, number))
            return await wait_reason(conn, facts, await questions.open_of(conn, [number]))

    chain = on_connection(store.chain)

    async def replacement(self, number: int) -> Replacement:
        """Return the unique key of a job, and the jobs that it replaced and that replaced it."""
        async with self._db.connection() as conn:
            return await control.replacement(conn, number) or Replacement(None, None, None)

    async def stats(self, viewer: str = "") -> Stats:
        """Return counts of jobs, questions and workers; `viewer` as for `questions.counts`."""
        counts = await self.counts() or {}
        async with self._db.connection() as conn:
            asked = await questions.counts(conn, viewer, COUNT_LIMIT)
            pauses = await store.pauses(conn)
            answers, seconds = await store.answer_times(conn)
            failures = await store.failure_counts(conn, COUNT_LIMIT)
            registered = await workers.all_workers(conn, self._lease)
        live = [worker for worker in registered if not worker.lost]
        return Stats(
            jobs=counts,
            capped=[status for status, count in counts.items() if count >= COUNT_LIMIT],
            open_questions=sum(group.count for group in asked),
            expiring_within_an_hour=sum(group.expiring_soon for group in asked),
            next_expiry=min((at for group in asked if (at := group.next_expiry)), default=None),
            workers=len(live),
            slots=sum(worker.slots for worker in live),
            busy=sum(worker.busy for worker in live),
            answers_last_day=answers,
            answer_seconds=seconds,
            pauses=pauses,
            open_failures=_by_failure(failures),
        )

    async def open_failures(self) -> dict[str, int]:
        """Return the number of failures by status that are neither retried nor dismissed.

        At most 10,000 are counted.
        """
        async with self._db.connection() as conn:
            return _by_failure(await store.failure_counts(conn, COUNT_LIMIT))

    async def activity(
        self, since: datetime, after: store.EventCursor | None = None
    ) -> RecentActivity:
        """Return the activity since a time, or after the `end` of the last call.

        It reads only the events since then, at most the last 400,000.
        """
        first = int(since.timestamp()) // BUCKET_SECONDS
        by_number: dict[int, ActivityBucket] = {}
        end = await self.end_cursor()
        before = end
        for _ in range(ACTIVITY_MAX_PAGES):
            async with self._db.connection() as conn:
                buckets, remaining = await store.activity(
                    conn, after or (0, 0, 0), before, BUCKET_SECONDS, ACTIVITY_PAGE_SIZE
                )
            for bucket in buckets:
                by_number[bucket.at] = bucket + by_number.get(bucket.at)
            if remaining is None or any(bucket.at < first for bucket in buckets):
                return RecentActivity(by_number, end, first)
            before = remaining
        return RecentActivity(by_number, end, min(by_number) + 1)

    async def health(self) -> tuple[ServerHealth, float]:
        """Return the server's settings, and by how many seconds the local clock is ahead."""
        async with self._db.connection() as conn:
            before = time.time()
            health = await store.health(conn)
            return health, (before + time.time()) / 2 - health.clock

    async def receives_notifications(self) -> bool:
        """Return whether a session receives notifications."""
        connection = await self._db.dedicated_connection()
        try:
            with translate_errors():
                return await receives_notifications(connection, NOTIFICATION_TIMEOUT)
        finally:
            await connection.close()

    foreign_settings = on_connection(schema.foreign_settings)
    oldest_snapshot = on_connection(schema.oldest_snapshot)

    async def invariants(self) -> dict[str, list[tuple[int, str]]]:
        """Return, for each data invariant, at most a hundred rows that violate it."""
        from draftsman.jobs.details.invariants import violations

        async with self._db.connection() as conn:
            return await violations(conn)

    async def _follow_job(
        self, number: int, new: bool, after: tuple[int, int, int] | None
    ) -> AsyncIterator[Event]:
        last = after[2] if after else 0
        if new:
            while events := await self.job_events(number, last):
                last = events[-1].id
        while True:
            finished = (await self.job(number)).status in TERMINAL
            events = await self.job_events(number, last)
            for event in events:
                last = event.id
                yield event
            if len(events) < PAGE_SIZE:
                if finished:
                    return
                await asyncio.sleep(FOLLOW_INTERVAL)


def _by_failure(counts: dict[str, int]) -> dict[str, int]:
    return {str(status): counts.get(status, 0) for status in FAILURES}


@dataclass(frozen=True, slots=True)
class _Scan:
    """The parameters of filters, and the number where their scan stops, if older jobs are left."""

    params: dict[str, Any]
    scanned_to: int | None


async def _scan_of(conn: Connection, filters: JobFilters) -> _Scan:
    """Return the bounds of numbers between which jobs that match filters are read."""
    statuses = filters.get("statuses")
    since = filters.get("since")
    until = filters.get("until")
    before = filters.get("before")
    scanned = {name: filters.get(name) or None for name in SCANNED}
    if scanned["tags"] is not None:
        scanned["tags"] = list(filters["tags"])
    end = await store.newest(conn) + 1 if before is None else before
    if until is not None:
        # numbers follow time within an hour: from here on, all jobs are newer
        end = min(end, await store.first_since(conn, until + CLOCK_DIFFERENCES))
    first = 0 if since is None else await store.first_since(conn, since)
    lowest = max(first, end - SCAN_LIMIT) if any(scanned.values()) else first
    params: dict[str, Any] = {**scanned, "since": since, "until": until}
    params["statuses"] = [str(item) for item in (Status if statuses is None else statuses)]
    params["requested"] = bool(
        since or until or any(value for name, value in scanned.items() if name != "queue")
    )
    return _Scan(
        params | {"before": end, "lowest": lowest},
        lowest if lowest > max(first, 1) else None,
    )


def _hold(job: JobSummary, serving: Sequence[ServingWorker]) -> str | None:
    """Return why a job cannot be claimed, or which worker a claimable job lacks."""
    if job.hold is not None or job.status not in CLAIMABLE or job.job_paused:
        return job.hold
    return missing_worker(serving, job.queue, job.type)
