"""job -> claim -> run: how work comes into a worker's hands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from draftsman.domain.run import ClaimedJob, Lease
from draftsman.store import claim as store
from draftsman.store import run_state
from draftsman.store.postgres.database import Database, retry_conflicts

CONNECT_TIMEOUT: Final = 2.0
"""Seconds that the worker's loops wait for a connection before they call it an outage."""


class Claim:
    """Claims for one worker, and keeps its leases alive."""

    def __init__(self, db: Database, worker: UUID, queues: Sequence[str]) -> None:
        self._db = db
        self._worker = worker
        self._queues = queues
        self._line = db.dedicated_session()
        self.heartbeat_session = db.dedicated_session(pinned=False)
        """The session of the heartbeat: it must not wait until the pool has a connection."""

    def with_own_session(self) -> Claim:
        """Return claims of the same worker over a session of their own."""
        return Claim(self._db, self._worker, self._queues)

    async def exchange(
        self,
        done: Sequence[tuple[Lease, dict[str, Any]]],
        *,
        types: Sequence[str],
        skip: Sequence[str],
        free: int,
        ahead: int,
    ) -> list[ClaimedJob]:
        """Settle what is done and claim for the free slots, in one statement.

        A job that was settled comes back completed or canceled; one that does not come back is
        either lost, or held by another transaction and to be handed in again.
        """

        async def work() -> list[ClaimedJob]:
            async with self._line.connection(CONNECT_TIMEOUT) as conn:
                return await store.exchange(
                    conn,
                    sorted(done, key=lambda one: one[0].job),
                    worker=self._worker,
                    queues=self._queues,
                    types=types,
                    skip=skip,
                    free=free,
                    ahead=ahead,
                )

        return await retry_conflicts(work)

    async def start(self, leases: Sequence[Lease]) -> list[ClaimedJob]:
        """Start jobs that were claimed ahead; those canceled meanwhile do not come back."""
        return await self._db.run_transaction(lambda conn: store.start(conn, leases))

    async def release_claims(self, leases: Sequence[Lease], reason: str) -> None:
        """Return claimed jobs that were never started; spends nothing."""
        detail = json.dumps({"reason": reason})
        await self._db.run_transaction(lambda conn: store.release_claims(conn, leases, detail))

    async def release_lost_claims(self, leases: Sequence[Lease]) -> int:
        """Return what this worker holds besides `leases`: claims whose reply never came."""
        tokens = [lease.token for lease in leases]
        return await self._db.run_transaction(
            lambda conn: store.release_lost_claims(conn, self._worker, tokens)
        )

    async def known_types(self, type: str, lease: float) -> tuple[int, list[str]]:
        """Return how many live workers know the type, and every type known to one."""
        async with self._db.connection() as conn:
            return await store.known_types(conn, type, lease)

    async def previous_runtime(self, lease: Lease) -> float:
        """Return the seconds that the job ran before this run."""
        async with self._db.connection() as conn:
            return await store.previous_runtime(conn, lease)

    async def open_runs(self, jobs: Sequence[int]) -> list[tuple[int, UUID, int | None]]:
        """Return number, id and open run, None without one, of the jobs that exist."""
        async with self._db.connection() as conn:
            return await store.open_runs(conn, jobs)

    async def heartbeat(
        self, leases: Sequence[Lease], *, draining: bool
    ) -> tuple[bool, list[run_state.LeaseState]]:
        """Beat for the worker and its runs, in one statement, on a session of its own."""

        async def work() -> tuple[bool, list[run_state.LeaseState]]:
            async with self.heartbeat_session.connection(CONNECT_TIMEOUT) as conn:
                return await run_state.heartbeat(conn, self._worker, leases, draining=draining)

        return await retry_conflicts(work)
