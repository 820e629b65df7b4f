"""Maintenance sweeps, run in turn by the leader and by hand with `draftsman sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from draftsman.database.database import Database
from draftsman.errors import UsageError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import Sweep
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.worker import store
from draftsman.worker.registry import store as workers
from draftsman.worker.service.dead_workers import DeadWorkers

LEADER: Final = "leader"
LEASE_WAIT: Final = 2.0
"""Seconds to wait for the session of the leader's lease."""


class Sweeps:
    """The sweeps that services declare, and the lease of the leader that runs them."""

    def __init__(
        self,
        db: Database,
        policy: Policy,
        *,
        sweeps: Sequence[Sweep],
        dead_workers: DeadWorkers,
        lease: float,
    ) -> None:
        """`sweeps` are in the order of their first runs; `lease` is in seconds."""
        self._db = db
        self._policy = policy
        self._by_name = {sweep.name: sweep for sweep in sweeps}
        self._due_times = [sweep.due.query for sweep in sweeps if sweep.due is not None]
        self._dead_workers = dead_workers
        self._leading = db.dedicated_session(pinned=False, lease=lease)
        """Session of the leader's lease, so that it never waits for a pooled connection."""

    @property
    def all(self) -> list[Sweep]:
        """The sweeps, in their order."""
        return list(self._by_name.values())

    @property
    def names(self) -> list[str]:
        """The names of the sweeps, in their order."""
        return list(self._by_name)

    async def run(self, name: str, term: LeaderTerm) -> int:
        """Run a sweep in the term of a leader; return the number of changed rows."""
        return await self._by_name[name].run(term)

    async def run_now(self, name: str, actor: Actor) -> int:
        """Run a sweep by hand; return the number of changed rows.

        Raises UsageError, NotPermitted.
        """
        self._policy.check(self._policy.resolve(actor), Verb.SWEEP)
        if name not in self._by_name:
            raise UsageError(f"unknown sweep {name!r}; choose: {', '.join(self.names)}")
        return await self.run(name, LeaderTerm())

    @property
    def refused(self) -> dict[str, int]:
        """The number of rows that each sweep has set aside, as the database refuses them."""
        isolations = [isolation for sweep in self.all for isolation in sweep.isolations]
        counts = {isolation.sweep: len(isolation.aside) for isolation in isolations}
        return {sweep: count for sweep, count in counts.items() if count}

    async def next_due(self) -> float | None:
        """Return the seconds until a sweep has something to do; None when nothing is scheduled."""
        async with self._db.connection() as conn:
            return await store.next_due(conn, self._due_times)

    async def has_dead_local_workers(self) -> bool:
        """Return whether the process of a registered worker on this host has ended."""
        return await self._dead_workers.any_here()

    async def acquire(self, owner: UUID, seconds: float) -> int | None:
        """Acquire the leader's lease if it is free or its holder is dead; return the term."""
        dead = await self._dead_workers.all()
        async with self._db.connection() as conn:
            return await workers.acquire(conn, LEADER, owner, seconds, dead)

    async def renew(self, term: LeaderTerm, seconds: float) -> bool:
        """Renew the lease of this term; False when it has expired."""
        async with self._leading.connection(LEASE_WAIT) as conn:
            return await workers.renew(conn, LEADER, term.owner, term.term or 0, seconds)

    async def resign(self, term: LeaderTerm) -> None:
        """Release the lease and its session."""
        try:
            async with self._leading.connection(LEASE_WAIT) as conn:
                await workers.resign(conn, LEADER, term.owner, term.term or 0)
        finally:
            await self._leading.close()
