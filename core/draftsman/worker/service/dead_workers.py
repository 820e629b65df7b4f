"""Dead workers: the rescue of their jobs, and the removal of their rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import UUID

from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.database.selection import ALL, Selection
from draftsman.errors import Refused
from draftsman.ids import job_name
from draftsman.jobs.control.service.control import insert_retry
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import Sweep, repeat
from draftsman.people.actor import SYSTEM
from draftsman.processes.host import Liveness, liveness
from draftsman.tracing.tracer import active
from draftsman.worker import store
from draftsman.worker.registry import store as workers
from draftsman.worker.run_trace import record_lost_run

SUSPECTS_INTERVAL: Final = 2.0
"""Maximum seconds between two looks at the jobs that were lost together."""
UNLOCKED_TIMEOUT: Final = 15.0
"""Seconds without a session lock or a heartbeat before a worker counts as dead."""
_log = logging.getLogger(__name__)


class DeadWorkers:
    """Workers whose process has ended, or whose session and heartbeats have."""

    def __init__(self, db: Database, *, lease: float, deregister_after: float, limit: int) -> None:
        """`lease` is that of runs, in seconds; a transaction rescues `limit` jobs."""
        self._db = db
        self._lease = lease
        self._deregister_after = deregister_after
        self._limit = limit
        self._rescued = Isolation(db, "rescue")
        self._suspects = Isolation(db, "suspects")
        self._deregistered = Isolation(
            db, "deregister", lambda lock: f"the worker with the session lock {lock}"
        )

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweeps: a worker is deregistered after its jobs have been rescued."""
        return [
            Sweep(
                name="rescue",
                description="rescues the jobs of dead workers",
                run=partial(repeat, self.rescue, self._limit),
                isolations=(self._rescued,),
                follows_deaths=True,
            ),
            Sweep(
                name="suspects",
                description="tries jobs that were lost together, one at a time",
                run=self.suspects,
                isolations=(self._suspects,),
                max_interval=SUSPECTS_INTERVAL,
            ),
            Sweep(
                name="deregister",
                description="removes dead workers",
                run=self.deregister,
                isolations=(self._deregistered,),
                follows_deaths=True,
            ),
        ]

    async def all(self) -> list[UUID]:
        """Return the workers that seem dead; statements leave out those with a session lock."""
        async with self._db.connection() as conn:
            await store.watch_locks(conn)
            unlocked = set(await store.unlocked(conn, UNLOCKED_TIMEOUT))
            processes = await workers.processes(conn)
        states = {id: liveness(host_id, pid, started) for id, host_id, pid, started in processes}
        return [
            id
            for id, state in states.items()
            if state is Liveness.ENDED or (state is Liveness.UNKNOWN and id in unlocked)
        ]

    async def any_here(self) -> bool:
        """Return whether the process of a registered worker on this host has ended."""
        async with self._db.connection() as conn:
            processes = await workers.processes(conn)
        return any(
            liveness(host_id, pid, started) is Liveness.ENDED
            for _, host_id, pid, started in processes
        )

    async def rescue(self, term: LeaderTerm, known_dead: Sequence[UUID] = ()) -> int:
        """Rescue the jobs of dead workers; `known_dead` are workers that have stopped.

        A worker is dead when its process on this host has ended, or when it was silent with its
        session lock free for 15 s and its process cannot be seen. As long as the lock is held, it
        is alive until its lease expires.
        """
        dead = [*await self.all(), *known_dead]
        return await self._rescued.run(
            lambda conn, selection: self.rescue_runs(conn, term, dead, selection),
            lambda conn, selection: store.rescue_candidates(
                conn, term, self._limit, selection, dead=dead, lease=self._lease
            ),
        )

    async def rescue_runs(
        self,
        conn: Connection,
        term: LeaderTerm,
        dead: Sequence[UUID],
        selection: Selection = ALL,
    ) -> int:
        """Rescue the jobs of these workers and those without a heartbeat; return their number.

        A job that ends with `on_lost = new_job` gets its new job in the same transaction.
        """
        rescued = await store.rescue(
            conn, term, self._limit, selection, dead=dead, lease=self._lease
        )
        if (tracer := active()) is not None and rescued:
            for run in await store.lost_runs(conn, [job.number for job in rescued]):
                record_lost_run(tracer, run)
        for job in rescued:
            if job.status is Status.FAILED and job.on_lost is OnLost.NEW_JOB:
                await _insert_replacement(conn, job.number)
        return len(rescued)

    async def suspects(self, term: LeaderTerm) -> int:
        """Try the jobs that were lost together, one at a time."""
        return await self._suspects.run(
            lambda conn, selection: store.suspects(conn, term, selection),
            store.suspects_candidates,
        )

    async def deregister(self, term: LeaderTerm) -> int:
        """Delete dead workers that hold no jobs."""
        dead = await self.all()
        after = self._deregister_after
        return await self._deregistered.run(
            lambda conn, selection: store.deregister(conn, term, selection, dead=dead, after=after),
            lambda conn, selection: store.deregister_candidates(
                conn, term, selection, dead=dead, after=after
            ),
        )


async def _insert_replacement(conn: Connection, number: int) -> None:
    """Insert the new job of a lost job; a refusal is recorded and stops no other rescue.

    Raises LostRace on a conflict: the next round repeats the whole rescue.
    """
    try:
        async with conn.transaction():
            await insert_retry(conn, number, SYSTEM)
    except Refused as error:
        _log.error(
            "%s was lost and could not be replaced by a new job: %s", job_name(number), error
        )
        await store.not_followed(conn, number, str(error))
