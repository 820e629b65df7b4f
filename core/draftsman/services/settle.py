"""outcome -> the job's next state. The last write of a run, fenced like all of them."""

from __future__ import annotations

import logging
import math
from datetime import UTC, datetime

from draftsman.domain.classify import ErrorClass, classify
from draftsman.domain.job import Status
from draftsman.domain.limits import Limits
from draftsman.domain.outcome import Cancel, Done, Outcome, Snooze
from draftsman.domain.retry import after_failure, layer
from draftsman.domain.run import Claimed, RunStatus
from draftsman.domain.text import REQUEST_LIMIT, bounded, clean
from draftsman.errors import Failure
from draftsman.log import redact
from draftsman.store import settle as store
from draftsman.store.db import Database

LONGEST = 86_400.0 * 366
"""Seconds that a job may be put off."""
ERROR_LIMIT = 4000
"""Characters of an error that job and run keep; a longer one is whole in the run's log."""
READ = 10 * ERROR_LIMIT
"""Characters of an error that are looked through for secrets: more than can be kept."""
_log = logging.getLogger(__name__)


class Settle:
    """Ends runs."""

    def __init__(self, db: Database, limits: Limits) -> None:
        self._db = db
        self._limits = limits

    async def outcome(self, work: Claimed, outcome: Outcome) -> Status | None:
        """Write what the handler returned; return the job's status, None for a lost run."""
        match outcome:
            case Done(result):
                value = bounded(result, REQUEST_LIMIT, "the result")
                return await self._write(
                    work, store.Ending(Status.COMPLETED, RunStatus.COMPLETED, result=value)
                )
            case Snooze(until):
                return await self._write(work, _snoozed(until))
            case Cancel(reason):
                kept = clean(reason)[:2000]
                ending = store.Ending(Status.CANCELED, RunStatus.CANCELED, reason=kept)
                return await self._write(work, ending)

    async def failure(self, work: Claimed, failure: Failure) -> Status | None:
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
        ending = store.Ending(
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

    async def hand_back(self, work: Claimed, reason: str) -> Status | None:
        """Return a running job at its checkpoint, spending nothing."""
        ending = store.Ending(Status.RESUMED, RunStatus.INTERRUPTED, detail={"reason": reason})
        return await self._write(work, ending)

    async def canceled(self, work: Claimed) -> Status | None:
        """End a run whose job somebody wanted canceled; writes nothing where nobody did."""
        ending = store.Ending(Status.CANCELED, RunStatus.CANCELED, only_canceled=True)
        return await self._write(work, ending)

    async def _write(self, work: Claimed, ending: store.Ending) -> Status | None:
        settled = await self._settle(work, ending)
        return settled.status if settled else None

    async def _settle(self, work: Claimed, ending: store.Ending) -> store.Settled | None:
        return await self._db.arrow(lambda conn: store.settle(conn, work.lease, ending))


def _report(work: Claimed, ending: store.Ending, settled: store.Settled | None) -> None:
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
    text: str = clean(redact(error[:READ]))
    return text if len(text) <= ERROR_LIMIT else text[: ERROR_LIMIT - 1] + "…"


def _origin(failure: Failure) -> dict[str, str] | None:
    if failure.code is None:
        return None
    return {
        "origin": clean(redact(failure.origin[:READ]))[:200],
        "code": clean(redact(failure.code[:READ]))[:200],
    }


def _snoozed(until: datetime | float) -> store.Ending:
    if isinstance(until, datetime):
        return store.Ending(Status.SCHEDULED, RunStatus.PAUSED, until=until)
    delay = min(max(0.0, float(until)), LONGEST) if math.isfinite(until) else LONGEST
    return store.Ending(Status.SCHEDULED, RunStatus.PAUSED, delay=delay)
