"""Claims of jobs by a worker, and the heartbeat of its leases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from draftsman.database.database import Database, on_connection
from draftsman.database.database_connection import retry_conflicts
from draftsman.database.isolation import Isolation
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import ClaimedJob, Lease, LeaseState
from draftsman.jobs.runs.store import claim as store
from draftsman.jobs.runs.store import run_state

CLAIMED: Final = (Status.CLAIMED, Status.RUNNING)
CONNECT_TIMEOUT: Final = 2.0
"""Seconds that the worker's loops wait for a connection before it counts as an outage."""
PROBED: Final = 20
"""Jobs of each queue that are claimed one by one where the database refuses to claim several."""
IN_TWO_STEPS: Final = 20
"""Calls in two statements after which a single statement is tried again."""


class Claim:
    """Claims for a worker, and heartbeats for its leases."""

    def __init__(
        self,
        db: Database,
        worker: UUID,
        queues: Sequence[str],
        *,
        limited: bool = False,
        lease: float | None = None,
    ) -> None:
        """`limited` says whether jobs may have limits; `lease` is the time of leases in seconds."""
        self._db = db
        self._limited = limited
        self._in_two_steps = 0
        """The next calls that are made in two statements."""
        self._worker = worker
        self._queues = queues
        self._lease = lease
        self._isolation = Isolation(db, "claim")
        self._session = db.dedicated_session(lease=lease)
        self.heartbeat_session = db.dedicated_session(pinned=False, lease=lease)
        """Session of the heartbeat, so that it never waits for a pooled connection."""

    def with_own_session(self) -> Claim:
        """Return claims of the same worker with a separate session."""
        return Claim(self._db, self._worker, self._queues, limited=self._limited, lease=self._lease)

    async def exchange(
        self,
        done: Sequence[tuple[Lease, dict[str, Any]]],
        *,
        types: Sequence[str],
        free: int,
        ahead: int,
        after: int | None = None,
    ) -> list[ClaimedJob]:
        """Settle finished runs and claim jobs for free slots, in one statement.

        Claims begin at the start of the queues, or `after` a claimed job: then only jobs of its
        queue and priority are found, in later places.

        Settled jobs are returned as completed or canceled. A job that is not returned is lost, or
        locked by another transaction and to be settled again.

        A statement starts jobs that waited for the places of the runs it settles, unless they have
        several limits or a rate: it does not see that they get places. Where such limits leave
        slots free, a second statement of the same transaction claims these jobs.

        Jobs that `claim_apart` has set aside are not claimed.
        """
        aside = self._isolation.aside
        if not aside:
            return await self._exchange(done, types, free, ahead, after)
        async with self._db.transaction() as conn:
            await store.keep_from_claims(conn, aside)
            return await self._exchange(done, types, free, ahead, after)

    async def claim_apart(
        self, types: Sequence[str], free: int, ahead: int, error: Exception
    ) -> list[ClaimedJob]:
        """Claim one by one after a refused claim, and set aside the jobs that are refused.

        The other candidates are locked by another session meanwhile, so that the claim takes one.
        Raises the `error` of the claim where no job is refused alone, or all are.
        """
        async with self._db.connection() as conn:
            aside = self._isolation.aside
            jobs = await store.claimable_jobs(conn, self._queues, types, aside, PROBED)
        claimed: list[ClaimedJob] = []

        async def claim_only(number: int) -> int:
            other_jobs = [other for other in jobs if other != number]
            async with self._db.transaction() as conn:
                await store.keep_from_claims(conn, [*self._isolation.aside, *other_jobs])
                taken = await self._exchange([], types, min(1, free), 0 if free else 1)
            claimed.extend(taken)
            return len(taken)

        for number in jobs:
            if len(claimed) == (free or ahead):
                break
            try:
                await self._isolation.each([(number, number)], claim_only)
            except Exception:  # an outage or a conflict; a refused job is set aside
                if not claimed:
                    raise
                break
        refused = set(jobs) & set(self._isolation.aside)
        if not claimed and (not refused or len(refused) >= PROBED):
            raise error
        return claimed

    async def _exchange(
        self,
        done: Sequence[tuple[Lease, dict[str, Any]]],
        types: Sequence[str],
        free: int,
        ahead: int,
        after: int | None = None,
    ) -> list[ClaimedJob]:
        step = partial(
            store.exchange,
            worker=self._worker,
            queues=self._queues,
            types=types,
            after=after,
        )

        async def work() -> list[ClaimedJob]:
            async with self._session.connection(CONNECT_TIMEOUT) as conn:
                if not (self._in_two_steps and done and free):
                    return await step(conn, done, free=free, ahead=ahead)
                async with conn.transaction():
                    settled = await step(conn, done, free=0, ahead=0)
                    return [*settled, *await step(conn, [], free=free, ahead=ahead)]

        jobs = await retry_conflicts(work)
        if self._limited and done:
            claimed = sum(job.status in CLAIMED for job in jobs)
            settled = len(jobs) - claimed  # others are locked, and keep their places
            if self._in_two_steps:
                self._in_two_steps = self._in_two_steps - 1 if claimed else 0
            elif claimed < min(free, settled):
                self._in_two_steps = IN_TWO_STEPS
        return jobs

    async def start(self, leases: Sequence[Lease]) -> list[ClaimedJob]:
        """Start jobs that were claimed ahead; jobs canceled meanwhile are left out."""
        return await self._db.run_transaction(lambda conn: store.start(conn, leases))

    async def release_claims(self, leases: Sequence[Lease], reason: str) -> None:
        """Return claimed jobs that were never started, without spending an attempt."""
        detail = json.dumps({"reason": reason})
        await self._db.run_transaction(lambda conn: store.release_claims(conn, leases, detail))

    async def release_lost_claims(
        self, leases: Sequence[Lease], in_grace: Sequence[Lease] = ()
    ) -> int:
        """Return claims of this worker other than `leases`: their replies were lost.

        An answer may have claimed the jobs of the parked runs `in_grace`, which are about to start
        them.
        """
        tokens = [lease.token for lease in leases]
        return await self._db.run_transaction(
            lambda conn: store.release_lost_claims(conn, self._worker, tokens, in_grace)
        )

    async def held(self, leases: Sequence[Lease]) -> set[int]:
        """Return the tokens of those leases that this worker still has."""
        async with self._db.connection() as conn:
            return await store.held(conn, self._worker, leases)

    async def continue_in_grace(
        self, parked: Lease, *, ends: bool
    ) -> tuple[bool, ClaimedJob | None]:
        """Start the claim that an answer to a parked run made for this worker.

        Return whether the job still waits for the answer, and the started job. With `ends`, the
        grace period ends first, so that a later answer leaves the job to any worker.
        """
        waiting, claimed = await self._claimed_in_grace(parked, ends=ends)
        if claimed is None:
            return waiting, None
        started = await self.start([claimed])
        return False, started[0] if started else None

    async def leave_grace(self, parked: Lease) -> None:
        """End the grace period of a parked run, and release a claim that it made."""
        _, claimed = await self._claimed_in_grace(parked, ends=True)
        if claimed is not None:
            await self.release_claims([claimed], "its agent has ended")

    async def _claimed_in_grace(self, parked: Lease, *, ends: bool) -> tuple[bool, Lease | None]:
        if ends:
            await self._db.run_transaction(lambda conn: store.end_grace(conn, self._worker, parked))
        async with self._db.connection() as conn:
            waiting, token = await store.claim_in_grace(conn, self._worker, parked)
        return waiting, None if token is None else Lease(parked.job, 0, token)

    previous_runtime = on_connection(store.previous_runtime)
    open_runs = on_connection(store.open_runs)

    async def heartbeat(
        self, leases: Sequence[Lease], *, draining: bool
    ) -> tuple[bool, list[LeaseState]]:
        """Send the heartbeat of the worker and its runs, in one statement."""
        async with self.heartbeat_session.connection(CONNECT_TIMEOUT) as conn:
            return await run_state.heartbeat(conn, self._worker, leases, draining=draining)
