"""outcome -> the job's next state. The last write of a run, fenced like all of them."""

from __future__ import annotations

import logging
import math
from datetime import UTC, datetime

from draftsman.domain.job import Status
from draftsman.domain.outcome import Cancel, Done, Outcome, Snooze
from draftsman.domain.retries.error_classes import ErrorClass, classify
from draftsman.domain.retries.job_limits import JobLimits
from draftsman.domain.retries.retry_policy import after_failure, layer
from draftsman.domain.run import ClaimedJob, RunStatus
from draftsman.domain.text import REQUEST_LIMIT, clean, clean_within_limit
from draftsman.errors import Failure
from draftsman.log import redact
from draftsman.store import run_state as store
from draftsman.store.postgres.database import Database

MAX_SNOOZE = 86_400.0 * 366
"""Seconds that a job may be put off."""
ERROR_LIMIT = 4000
"""Characters of an error that job and run keep; a longer one is whole in the run's log."""
MAX_ERROR_READ = 10 * ERROR_LIMIT
"""Characters of an error that are looked through for secrets: more than can be kept."""
_log = logging.getLogger(__name__)


class Settlement:
    """Ends runs."""

    def __init__(self, db: Database, limits: JobLimits) -> None:
        self._db = db
        self._limits = limits

    async def outcome(self, work: ClaimedJob, outcome: Outcome) -> Status | None:
        """Write what the handler returned; return the job's status, None for a lost run."""
        match outcome:
            case Done(result):
                value = clean_within_limit(result, REQUEST_LIMIT, "the result")
                return await self._write(
                    work, store.RunEnd(Status.COMPLETED, RunStatus.COMPLETED, result=value)
                )
            case Snooze(until):
                return await self._write(work, _snoozed(until))
            case Cancel(reason):
                kept = clean(reason)[:2000]
                ending = store.RunEnd(Status.CANCELED, RunStatus.CANCELED, reason=kept)
                return await self._write(work, ending)

    async def failure(self, work: ClaimedJob, failure: Failure) -> Status | None:
        """Write a failure and what follows it; return the job's status, None for a lost run."""
        kind = classify(failure)
        after = after_failure(
            kind,
            self._limits.of_job(work),
            attempts=work.attempts,
            max_attempts=work.max_attempts,
            retry_count=work.retry_count,
            max_retries=work.max_retries,
            retry_after=failure.retry_after,
        )
        ending = store.RunEnd(
            after.status,
            RunStatus.FAILED,
            error=kept(str(failure)),
            error_class=ErrorClass.PERMANENT if kind is ErrorClass.VALID else kind,
            attempt=int(after.spend_attempt),
            retry=int(after.spend_retry),
            delay=after.delay or 0.0,
            exit_code=failure.program_exit,
            detail=_origin(failure),
        )
        settled = await self._settle(work, ending)
        _report(work, ending, settled)
        return settled.status if settled else None

    async def release_run(self, work: ClaimedJob, reason: str) -> Status | None:
        """Return a running job at its checkpoint, spending nothing."""
        ending = store.RunEnd(Status.RESUMED, RunStatus.INTERRUPTED, detail={"reason": reason})
        return await self._write(work, ending)

    async def canceled(self, work: ClaimedJob) -> Status | None:
        """End a run whose job somebody wanted canceled; writes nothing where nobody did."""
        ending = store.RunEnd(Status.CANCELED, RunStatus.CANCELED, only_canceled=True)
        return await self._write(work, ending)

    async def _write(self, work: ClaimedJob, ending: store.RunEnd) -> Status | None:
        settled = await self._settle(work, ending)
        return settled.status if settled else None

    async def _settle(self, work: ClaimedJob, ending: store.RunEnd) -> store.SettledJob | None:
        return await self._db.run_transaction(lambda conn: store.settle(conn, work.lease, ending))


def _report(work: ClaimedJob, ending: store.RunEnd, settled: store.SettledJob | None) -> None:
    """Log a failed run with what follows it: another run, or the end of the job."""
    what = f"{work.name}: run {work.run} failed"
    spent = layer(
        ending.error_class,
        attempts=work.attempts + ending.attempt,
        max_attempts=work.max_attempts,
        retry_count=work.retry_count + ending.retry,
        max_retries=work.max_retries,
    )
    if settled is None:
        _log.warning("%s, after it had lost its job: %s", what, ending.error)
    elif settled.next_retry_at is not None:
        at = settled.next_retry_at.astimezone(UTC)
        _log.warning("%s (%s); retrying at %s: %s", what, spent, f"{at:%FT%TZ}", ending.error)
    elif settled.status is Status.CANCELED:
        _log.info("%s, and the job was canceled: %s", what, ending.error)
    else:
        why = f" ({spent}; dead letter)" if settled.status is Status.DEAD_LETTER else ""
        _log.error("%s failed%s: %s", work.name, why, ending.error)


def kept(error: str) -> str:
    """Return what job, run and event keep of an error: no secret, and as much as people read."""
    text: str = clean(redact(error[:MAX_ERROR_READ]))
    return text if len(text) <= ERROR_LIMIT else text[: ERROR_LIMIT - 1] + "…"


def _origin(failure: Failure) -> dict[str, str] | None:
    if failure.code is None:
        return None
    return {
        "origin": clean(redact(failure.origin[:MAX_ERROR_READ]))[:200],
        "code": clean(redact(failure.code[:MAX_ERROR_READ]))[:200],
    }


def _snoozed(until: datetime | float) -> store.RunEnd:
    if isinstance(until, datetime):
        return store.RunEnd(Status.SCHEDULED, RunStatus.PAUSED, until=until)
    delay = min(max(0.0, float(until)), MAX_SNOOZE) if math.isfinite(until) else MAX_SNOOZE
    return store.RunEnd(Status.SCHEDULED, RunStatus.PAUSED, delay=delay)
