"""Settlement of runs: the outcome decides the job's next status, in the run's last write."""

from __future__ import annotations

import logging
import math
from datetime import UTC, datetime
from typing import Any

from draftsman.database.database import Database
from draftsman.errors import DraftsmanError, Failure, NotOnThisWorker
from draftsman.formats.truncation import truncate
from draftsman.jobs.job import Status
from draftsman.jobs.retries import (
    ErrorClass,
    after_failure,
    classify,
    is_unexpected,
    next_try,
    next_try_text,
)
from draftsman.jobs.runs.job_limits import JobLimits
from draftsman.jobs.runs.outcome import Cancel, Done, Outcome, Snooze
from draftsman.jobs.runs.run import ClaimedJob, RunStatus
from draftsman.jobs.runs.store import run_state as store
from draftsman.log import redact
from draftsman.text import REQUEST_LIMIT, clean, clean_within_limit

MAX_SNOOZE = 86_400.0 * 366
"""Maximum delay of a snoozed job, in seconds."""
ERROR_LIMIT = 4000
"""Maximum length of a stored error, in characters; the run's log has the full text."""
MAX_ERROR_READ = 10 * ERROR_LIMIT
"""Characters of an error that are searched for secrets."""
_log = logging.getLogger(__name__)


class Settlement:
    """Settles runs."""

    def __init__(self, db: Database, limits: JobLimits) -> None:
        self._db = db
        self._limits = limits

    async def outcome(self, job: ClaimedJob, outcome: Outcome) -> Status | None:
        """Settle a run by its outcome; return the job's status, None after a lost lease."""
        match outcome:
            case Done(result):
                value = clean_within_limit(result, REQUEST_LIMIT, "the result")
                return await self._write(
                    job, store.RunEnd(Status.COMPLETED, RunStatus.COMPLETED, result=value)
                )
            case Snooze(until):
                return await self._write(job, _snoozed(until))
            case Cancel(reason):
                stored = clean(reason)[:2000]
                ending = store.RunEnd(Status.CANCELED, RunStatus.CANCELED, reason=stored)
                return await self._write(job, ending)

    async def failure(self, job: ClaimedJob, failure: Failure) -> Status | None:
        """Settle a failed run; return the job's status, None after a lost lease."""
        kind = classify(failure)
        unexpected = is_unexpected(failure)
        after = after_failure(
            kind,
            self._limits.of_job(job),
            job.retry_counts,
            unexpected=unexpected,
            retry_after=failure.retry_after,
            absent_in=job.run if isinstance(failure, NotOnThisWorker) else None,
        )
        ending = store.RunEnd(
            after.status,
            RunStatus.FAILED,
            error=stored_error(str(failure)),
            error_class=ErrorClass.PERMANENT if kind is ErrorClass.VALID else kind,
            attempt=int(after.spend_attempt),
            retry=int(after.spend_retry),
            delay=after.delay or 0.0,
            exit_code=failure.program_exit,
            detail=_origin(failure) | next_try(after, job.retry_counts),
        )
        settled = await self._settle(job, ending)
        _report(job, ending, settled, unexpected=unexpected)
        return settled.status if settled else None

    async def result(self, job: ClaimedJob, result: dict[str, Any]) -> Status | None:
        """Settle a completed run, or fail it if the database cannot store the values of its result.

        Return the job's status, None after a lost lease. An error that has another cause is raised:
        a lock, a trigger, a value of another row.
        """
        try:
            return await self.outcome(job, Done(result))
        except DraftsmanError as error:
            if not error.is_data_error or not await self._completes_without_result(job):
                raise
        try:
            return await self.outcome(job, Done(result))
        except DraftsmanError as error:
            if not error.is_data_error:
                raise
            failure = Failure(f"the result was rejected: {error}", declared="INVALID_OUTPUT")
            return await self.failure(job, failure)

    async def _completes_without_result(self, job: ClaimedJob) -> bool:
        """Return whether the run could be settled now with an empty result."""
        ending = store.RunEnd(Status.COMPLETED, RunStatus.COMPLETED, result={})
        try:
            async with self._db.connection() as conn, conn.transaction(force_rollback=True):
                return await store.settle(conn, job.lease, ending) is not None
        except DraftsmanError:
            return False

    async def release_run(self, job: ClaimedJob, reason: str) -> Status | None:
        """Return a running job at its checkpoint, without spending an attempt."""
        ending = store.RunEnd(Status.RESUMED, RunStatus.INTERRUPTED, detail={"reason": reason})
        return await self._write(job, ending)

    async def canceled(self, job: ClaimedJob) -> Status | None:
        """Settle a run whose job has a cancel request; otherwise write nothing."""
        ending = store.RunEnd(Status.CANCELED, RunStatus.CANCELED, only_canceled=True)
        return await self._write(job, ending)

    async def _write(self, job: ClaimedJob, ending: store.RunEnd) -> Status | None:
        settled = await self._settle(job, ending)
        return settled.status if settled else None

    async def _settle(self, job: ClaimedJob, ending: store.RunEnd) -> store.SettledJob | None:
        return await self._db.run_transaction(lambda conn: store.settle(conn, job.lease, ending))


def _report(
    job: ClaimedJob,
    ending: store.RunEnd,
    settled: store.SettledJob | None,
    *,
    unexpected: bool,
) -> None:
    """Log a failed run and the retry or end of its job."""
    prefix = f"{job.name}: run {job.run} failed"
    if settled is None:
        _log.warning("%s after losing its lease: %s", prefix, ending.error)
    elif settled.next_retry_at is not None:
        retry_at = settled.next_retry_at.astimezone(UTC)
        following = next_try_text(ending.detail or {})
        _log.warning("%s; %s at %s: %s", prefix, following, f"{retry_at:%FT%TZ}", ending.error)
    elif settled.status is Status.CANCELED:
        _log.info("%s, and the job was canceled: %s", prefix, ending.error)
    else:
        is_dead = settled.status is Status.DEAD_LETTER
        suffix = f" ({_spent(job, ending, unexpected=unexpected)}; dead letter)" if is_dead else ""
        _log.error("%s failed%s: %s", job.name, suffix, ending.error)


def _spent(job: ClaimedJob, ending: store.RunEnd, *, unexpected: bool) -> str:
    """Return the budget that a dead letter has spent: `attempt 3 of 3`, `retry 5 of 5` or both."""
    retry = f"retry {job.retry_count + ending.retry} of {job.max_retries}"
    if ending.error_class == ErrorClass.TRANSIENT_APP:
        return retry
    attempt = f"attempt {job.attempts + ending.attempt} of {job.max_attempts}"
    return f"{attempt}, {retry}" if unexpected else attempt


def stored_error(error: str) -> str:
    """Return the redacted and shortened error that job, run and event store."""
    return truncate(clean(redact(error[:MAX_ERROR_READ])), ERROR_LIMIT)


def _origin(failure: Failure) -> dict[str, Any]:
    if failure.code is None:
        return {}
    return {
        "origin": clean(redact(failure.origin[:MAX_ERROR_READ]))[:200],
        "code": clean(redact(failure.code[:MAX_ERROR_READ]))[:200],
    }


def _snoozed(until: datetime | float) -> store.RunEnd:
    if isinstance(until, datetime):
        return store.RunEnd(Status.SCHEDULED, RunStatus.PARKED, until=until)
    delay = min(max(0.0, float(until)), MAX_SNOOZE) if math.isfinite(until) else MAX_SNOOZE
    return store.RunEnd(Status.SCHEDULED, RunStatus.PARKED, delay=delay)
