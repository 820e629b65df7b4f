"""Sweeps of queues: places of limits, postponed work, and types without a worker."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from draftsman.database.database import Database
from draftsman.database.isolation import Isolation, run_all
from draftsman.errors import Failure
from draftsman.ids import new_id
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.jobs.runs.service.settlement import Settlement
from draftsman.jobs.runs.store import claim
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat, run_isolated
from draftsman.queues import store
from draftsman.queues.queue_models import UnhandledType
from draftsman.settings.job_types import TypeSettings

CHECKED: Final = 1000
"""Jobs that a transaction checks after a change of the limits."""
BUCKETS: Final = 100
"""Buckets whose places a transaction gives."""
POSTPONED: Final = 20
"""Maximum number of buckets, keys and jobs whose locks a transaction has at a time."""
CANCELED: Final = 500
"""Maximum number of jobs that a transaction cancels."""
INTERVAL: Final = 2.0
"""Maximum seconds between two looks at the types of live workers."""
JOBS: Final = 1000
"""Jobs of a queue that a transaction looks at."""
FAILED_AT_ONCE: Final = 100
"""Jobs of a type that are failed before the next look for a worker that handles them."""
_log = logging.getLogger(__name__)


class LimitSweep:
    """Writes the limits of this configuration to the database, and gives due places.

    The leader writes them once in its term: all workers obey the table, whatever their own
    configuration.
    """

    def __init__(self, db: Database, rules: Sequence[dict[str, Any]]) -> None:
        self._db = db
        self._rules = rules
        self._written: LeaderTerm | None = None

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of limits."""
        return [
            Sweep(
                name="limits",
                description="writes the configured limits, and gives free places",
                run=self.sweep,
                due=DueTime(DueTurn.PLACES, store.LIMITS_DUE),
                applies_settings=True,
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Apply changed limits, and give places that are due; return the number of jobs."""
        return await run_all(
            lambda: self._configure(term),
            lambda: self._check(term),
            lambda: self._db.run_transaction(lambda conn: store.give_places(conn, term, BUCKETS)),
        )

    async def _check(self, term: LeaderTerm) -> None:
        """Set the limits of jobs after a change."""

        async def check(term: LeaderTerm) -> int:
            return await self._db.run_transaction(
                lambda conn: store.check_limits(conn, term, CHECKED)
            )

        await repeat(check, 1, term)

    async def _configure(self, term: LeaderTerm) -> None:
        if term.term is None or self._written == term:
            return
        rules = self._rules
        if await self._db.run_transaction(lambda conn: store.configure_limits(conn, term, rules)):
            _log.info("the limits have changed; now: %s", len(rules))
        self._written = term


class PostponedWork:
    """Gives places and keys, resolves children and groups, and cancels large trees and groups."""

    def __init__(self, db: Database) -> None:
        self._postponed = Isolation(db, "do_postponed", lambda id: f"postponed work {id}")
        self._canceled = Isolation(db, "do_cancels")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of postponed work."""
        return [
            Sweep(
                name="postponed",
                description="does what transactions left: places, keys, children and groups",
                run=self.sweep,
                isolations=(self._postponed, self._canceled),
                due=DueTime(DueTurn.POSTPONED_WORK, store.POSTPONED_DUE),
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Do the work that is due; return the number of buckets, keys and jobs."""
        return await run_all(
            lambda: repeat(self._do, POSTPONED, term), lambda: repeat(self._cancel, CANCELED, term)
        )

    async def _do(self, term: LeaderTerm) -> int:
        return await run_isolated(
            self._postponed,
            store.do_postponed,
            store.do_postponed_candidates,
            term=term,
            limit=POSTPONED,
        )

    async def _cancel(self, term: LeaderTerm) -> int:
        return await run_isolated(
            self._canceled,
            store.do_cancels,
            store.do_cancels_candidates,
            term=term,
            limit=CANCELED,
        )


class TypeSweep:
    """Keeps jobs that only other workers handle, or none, from delaying the rest.

    Jobs of a type with `unhandled = fail` fail while no live worker handles them; others wait. The
    claim does not depend on this sweep: a worker claims every job of its own types.
    """

    def __init__(
        self,
        *,
        db: Database,
        settlement: Settlement,
        lease: float,
        types: Mapping[str, TypeSettings],
    ) -> None:
        self._db = db
        self._settlement = settlement
        self._lease = lease
        self._failing = sorted(name for name, type in types.items() if type.unhandled == "fail")
        self._isolation = Isolation(db, "types")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of types without a worker."""
        return [
            Sweep(
                name="types",
                description="keeps jobs of types without a worker from delaying others",
                run=self.sweep,
                isolations=(self._isolation,),
                max_interval=INTERVAL,
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Return the number of jobs that were changed."""
        steps = (self._set_by_type, self._set_unhandled, self._fail)
        return await run_all(*(partial(repeat, step, 1, term) for step in steps))

    async def _set_by_type(self, term: LeaderTerm) -> int:
        return await self._db.run_transaction(
            lambda conn: store.set_by_type(conn, term, self._lease, JOBS)
        )

    async def _set_unhandled(self, term: LeaderTerm) -> int:
        return await self._db.run_transaction(
            lambda conn: store.set_unhandled_types(conn, term, self._lease, self._failing, JOBS)
        )

    async def _fail(self, term: LeaderTerm) -> int:
        """Fail jobs of `failing` types that no live worker handles; return their number."""
        if not self._failing:
            return 0
        async with self._db.connection() as conn:
            if not await store.leads(conn, term):
                return 0
            waiting = await store.waiting_for_types(conn, self._lease, JOBS)
        failed = 0
        for unhandled in waiting:
            if unhandled.type in self._failing:
                failed += await self._fail_type(unhandled)
        return failed

    async def _fail_type(self, unhandled: UnhandledType) -> int:
        """Fail jobs that may be claimed; paused and held jobs wait until then."""
        jobs = await self._db.run_transaction(
            lambda conn: claim.exchange(
                conn,
                [],
                worker=new_id(),
                queues=[unhandled.queue],
                types=[unhandled.type],
                free=FAILED_AT_ONCE,
                ahead=0,
            )
        )
        return await self._isolation.each([(job.number, job) for job in jobs], self._fail_job)

    async def _fail_job(self, job: ClaimedJob) -> int:
        text = f"no live worker handles the type {job.type!r}: unhandled = 'fail' in [types]"
        await self._settlement.failure(job, Failure(text, code="unknown_type"))
        return 1
