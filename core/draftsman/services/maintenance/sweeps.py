"""Maintenance, each once: what the leader does in turn and `draftsman sweep` by hand."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

from draftsman.domain.job import OnLost, Status
from draftsman.domain.messages.target import Target
from draftsman.domain.people.actor import SYSTEM, Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.errors import Refused, UsageError
from draftsman.host import is_dead, is_this_host
from draftsman.services.jobs.job_control import insert_retry
from draftsman.services.maintenance.archives import Archives
from draftsman.services.maintenance.reminders import Reminders
from draftsman.settings import SweepSettings
from draftsman.store import sweeps as store
from draftsman.store import workers
from draftsman.store.postgres.database import Connection, Database

LEADER: Final = "leader"
MONTHS_AHEAD: Final = 3
INTERVALS: Final = {"prune": 3600.0}
"""Seconds between two rounds, at least, of what looks at whole months."""
LEASE_WAIT: Final = 2.0
"""Seconds that the leader waits for the session of its lease."""
UNLOCKED_TIMEOUT: Final = 15.0
"""Seconds that a silent worker's session lock is free before it counts as dead."""
_log = logging.getLogger(__name__)


class Sweeps:
    """The sweeps by name, in the order in which the leader runs them."""

    def __init__(
        self,
        db: Database,
        policy: Policy,
        settings: SweepSettings,
        lease: float,
        archives: Archives,
        reminders: Reminders,
        fallback: Target | None = None,
    ) -> None:
        """`fallback` hears of dead letters that no target of theirs hears of."""
        self._db = db
        self._policy = policy
        self._settings = settings
        self._lease = lease
        self._fallback = fallback
        self._leading = db.dedicated_session(pinned=False)
        """The session of the leader's lease: it must not wait for a connection of the pool."""
        self.names: Final[dict[str, Callable[[store.LeaderTerm], Awaitable[int]]]] = {
            "expire": self.expire,
            "remind": reminders.remind,
            "promote": self.promote,
            "rescue": self.rescue,
            "reap": self.reap,
            "notify": self.notify,
            "partitions": self.partitions,
            "prune": archives.prune,
        }

    async def run_now(self, name: str, actor: Actor) -> int:
        """Run one sweep now; return how many rows it changed. Raises UsageError, NotPermitted."""
        self._policy.check(self._policy.resolve(actor), Verb.SWEEP)
        if name not in self.names:
            raise UsageError(f"there is no sweep {name!r}; choose: {', '.join(self.names)}")
        return await self.names[name](store.LeaderTerm())

    async def expire(self, term: store.LeaderTerm) -> int:
        """Escalate or close questions whose time is over: expire, default or continue."""
        limit = self._settings.limit

        async def work(conn: Connection) -> int:
            escalated = await store.escalate(conn, term, limit)
            return escalated + await store.expire(conn, term, limit)

        return await self._bounded(work)

    async def promote(self, term: store.LeaderTerm) -> int:
        """Queue scheduled and retrying jobs that are due."""
        return await self._bounded(lambda conn: store.promote(conn, term, self._settings.limit))

    async def rescue(self, term: store.LeaderTerm, gone: Sequence[UUID] = ()) -> int:
        """Take jobs back from the dead; `gone` are workers known to have died.

        A worker is dead when its process is gone from this host, or its session lock has been free
        for 15 s while it was silent; else after the lease.
        """
        dead = [*await self._dead(), *gone]
        return await self._bounded(lambda conn: self.rescue_runs(conn, term, dead))

    async def rescue_runs(
        self, conn: Connection, term: store.LeaderTerm, dead: Sequence[UUID]
    ) -> int:
        """Take back what these workers held and what was silent for too long; return how much.

        One transaction: a job that ends with `on_lost = new_job` has its new one when it commits.
        """
        found = await store.rescue(conn, term, self._settings.limit, dead=dead, lease=self._lease)
        for job in found:
            if job.status is Status.FAILED and job.on_lost is OnLost.NEW_JOB:
                await _successor(conn, job.number)
        return len(found)

    async def notify(self, term: store.LeaderTerm) -> int:
        """Send the fallback the dead letters that no target hears of; without one, log them."""
        limit, fallback = self._settings.limit, self._fallback
        found = await self._db.run_transaction(
            lambda conn: store.notify(conn, term, limit, fallback)
        )
        for number, invoker in found if fallback is None else ():
            _log.error("D-%s of %s is a dead letter, and nobody is notified", number, invoker)
        return len(found)

    async def reap(self, term: store.LeaderTerm) -> int:
        """Forget dead workers that hold nothing any more."""
        dead = await self._dead()
        after = self._settings.reap_after
        return await self._bounded(lambda conn: store.reap(conn, term, dead=dead, after=after))

    async def partitions(self, term: store.LeaderTerm) -> int:
        """Make the trail's partitions for the coming months."""
        return await self._bounded(lambda conn: store.partitions(conn, term, MONTHS_AHEAD))

    async def next_due(self) -> float | None:
        """Return the seconds until something is due; None when nothing is planned."""
        async with self._db.connection() as conn:
            return await store.next_due(conn)

    async def acquire(self, owner: UUID, seconds: float) -> int | None:
        """Take the leader's lease when it is free or its holder has died; return the term."""
        dead = await self._dead()
        async with self._db.connection() as conn:
            return await workers.acquire(conn, LEADER, owner, seconds, dead)

    async def renew(self, term: store.LeaderTerm, seconds: float) -> bool:
        """Lengthen the lease of this term; False when it is over."""
        async with self._leading.connection(LEASE_WAIT) as conn:
            return await workers.renew(conn, LEADER, term.owner, term.term or 0, seconds)

    async def resign(self, term: store.LeaderTerm) -> None:
        """Give the lease back, and the session with it."""
        try:
            async with self._leading.connection(LEASE_WAIT) as conn:
                await workers.resign(conn, LEADER, term.owner, term.term or 0)
        finally:
            await self._leading.close()

    async def has_dead_local_workers(self) -> bool:
        """Return whether a registered worker of this host is gone."""
        async with self._db.connection() as conn:
            known = await workers.processes(conn)
        return any(is_dead(place, pid, began) for _, place, pid, began in known)

    async def _dead(self) -> list[UUID]:
        async with self._db.connection() as conn:
            await store.watch_locks(conn)
            unlocked = set(await store.unlocked(conn, UNLOCKED_TIMEOUT))
            known = await workers.processes(conn)
        return [
            id
            for id, place, pid, began in known
            if (is_dead(place, pid, began) if is_this_host(place) else id in unlocked)
        ]

    async def _bounded(self, work: Callable[[Connection], Awaitable[int]]) -> int:
        return await self._db.run_transaction(work)


async def _successor(conn: Connection, number: int) -> None:
    """Make the next job of the chain; one that cannot be made harms no other rescue, and is told.

    Raises LostRace when somebody else is in between: then all of the rescue is for the next round.
    """
    try:
        async with conn.transaction():
            await insert_retry(conn, number, SYSTEM)
    except Refused as error:
        _log.error("D-%s was lost and no new job took its place: %s", number, error)
        await store.not_followed(conn, number, str(error))
