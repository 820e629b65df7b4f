"""The leader's part in types that no live worker handles."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from draftsman.domain.ids import new_id
from draftsman.domain.queues.queue_models import UnhandledType
from draftsman.domain.run import LeaderTerm
from draftsman.errors import Failure
from draftsman.services.runs.settlement import Settlement
from draftsman.store import claim
from draftsman.store.postgres.database import Database
from draftsman.store.scheduling import queues as store

JOBS: Final = 1000
"""Jobs of a queue that a transaction looks at."""
FAILED_AT_ONCE: Final = 100
"""Jobs of a type that are failed before the next look for a worker that handles them."""


class TypeSweep:
    """Keeps jobs that only other workers handle, or none, from delaying the rest.

    Jobs of the types `failing` fail while no live worker handles them; all others wait. The claim
    does not depend on this sweep: a worker claims every job of its own types.
    """

    def __init__(
        self, db: Database, settlement: Settlement, lease: float, failing: Collection[str] = ()
    ) -> None:
        self._db = db
        self._settlement = settlement
        self._lease = lease
        self._failing = sorted(failing)

    async def sweep(self, term: LeaderTerm) -> int:
        """Return the number of jobs that were changed."""
        changed = 0
        while some := await self._db.run_transaction(
            lambda conn: store.set_by_type(conn, term, self._lease, JOBS)
        ):
            changed += some
        while some := await self._db.run_transaction(
            lambda conn: store.set_unhandled_types(conn, term, self._lease, self._failing, JOBS)
        ):
            changed += some
        return changed + (await self._fail(term) if self._failing else 0)

    async def _fail(self, term: LeaderTerm) -> int:
        """Fail the jobs of `failing` types that no live worker handles; return their number."""
        failed = 0
        while True:
            async with self._db.connection() as conn:
                if not await store.leads(conn, term):
                    return failed
                waiting = await store.waiting_for_types(conn, self._lease, JOBS)
            some = 0
            for unhandled in waiting:
                if unhandled.type in self._failing:
                    some += await self._fail_type(unhandled)
            if not some:
                return failed
            failed += some

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
        for job in jobs:
            text = f"no live worker handles the type {job.type!r}: unhandled = 'fail' in [types]"
            await self._settlement.failure(job, Failure(text, code="unknown_type"))
        return len(jobs)
