"""outcome -> the job's next state. The last write of a run, fenced like all of them."""

from __future__ import annotations

import math
from datetime import datetime

from draftsman.domain.classify import ErrorClass, classify
from draftsman.domain.job import Status
from draftsman.domain.limits import Limits
from draftsman.domain.outcome import Cancel, Done, Outcome, Snooze
from draftsman.domain.retry import after_failure
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
        return await self._write(work, ending)

    async def hand_back(self, work: Claimed, reason: str) -> Status | None:
        """Return a running job at its checkpoint, spending nothing."""
        ending = store.Ending(Status.RESUMED, RunStatus.INTERRUPTED, detail={"reason": reason})
        return await self._write(work, ending)

    async def canceled(self, work: Claimed) -> Status | None:
        """End a run whose job somebody wanted canceled; writes nothing where nobody did."""
        ending = store.Ending(Status.CANCELED, RunStatus.CANCELED, only_canceled=True)
        return await self._write(work, ending)

    async def _write(self, work: Claimed, ending: store.Ending) -> Status | None:
        return await self._db.arrow(lambda conn: store.settle(conn, work.lease, ending))


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
