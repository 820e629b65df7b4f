"""Maintenance sweeps, run in turn by the leader and by hand with `draftsman sweep`."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from draftsman.attention.service.digests import Digests
from draftsman.attention.service.ladders import LadderSweep
from draftsman.attention.service.reminders import Reminders
from draftsman.costs.service.budgets import BudgetSweep
from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation, run_all
from draftsman.database.selection import ALL, Selection
from draftsman.deliveries.target import Target
from draftsman.errors import Refused, UsageError
from draftsman.events.service.archives import Archives
from draftsman.forges.follow_up_jobs.service import FollowUpSweep
from draftsman.ids import job_name
from draftsman.jobs.control.service.control import insert_retry
from draftsman.jobs.job import OnLost, Status
from draftsman.jobs.pending_decisions.service import PendingDecisions
from draftsman.jobs.runs.repetition import repeat
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import SYSTEM, Actor
from draftsman.people.policy import Policy, Verb
from draftsman.processes.host import Liveness, liveness
from draftsman.questions.permission_rules.service import PermissionRules
from draftsman.queues.service.limit_sweep import LimitSweep
from draftsman.queues.service.queues import Queues
from draftsman.queues.service.type_sweep import TypeSweep
from draftsman.schedules.service.firing import Firing
from draftsman.settings.forges import ForgeSettings
from draftsman.settings.workers import SweepSettings
from draftsman.worker import store
from draftsman.worker.registry import store as workers

LEADER: Final = "leader"
MONTHS_AHEAD: Final = 3
POSTPONED: Final = 20
"""Maximum number of buckets, keys and jobs whose locks a transaction has at a time."""
CANCELED: Final = 500
"""Maximum number of jobs that a transaction cancels."""
INTERVALS: Final = {"prune": 3600.0}
"""Minimum seconds between two runs of a sweep that handles whole months."""
URGENT: Final = {"follow_ups": 5.0, "suspects": 2.0, "types": 2.0}
"""Maximum seconds between two runs of a sweep for whose work no time is stored."""
ISOLATED: Final[dict[str, Callable[[int], str]]] = {
    "escalate": job_name,
    "expire": job_name,
    "promote": job_name,
    "do_postponed": lambda id: f"postponed work {id}",
    "do_cancels": job_name,
    "rescue": job_name,
    "suspects": job_name,
    "notify": job_name,
    "deregister": lambda lock: f"the worker with the session lock {lock}",
}
"""The statements whose refused rows are isolated, and the names of their rows."""
LEASE_WAIT: Final = 2.0
"""Seconds to wait for the session of the leader's lease."""
UNLOCKED_TIMEOUT: Final = 15.0
"""Seconds without a session lock or a heartbeat before a worker counts as dead."""
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
        firing: Firing,
        ladders: LadderSweep,
        decisions: PendingDecisions,
        rules: PermissionRules,
        digests: Digests,
        types: TypeSweep,
        fallback: Target | None = None,
        limits: Sequence[dict[str, Any]] = (),
        budgets: Sequence[dict[str, Any]] = (),
        timezone: str = "UTC",
        forges: Mapping[str, ForgeSettings] | None = None,
    ) -> None:
        """`fallback` receives dead letters that no other target receives.

        `limits` and `budgets` are those of this configuration, as `rules` of their settings returns
        them; `timezone` is that of the days of budgets. The
        events of `forges` are followed up.
        """
        self._db = db
        self._policy = policy
        self._settings = settings
        self._lease = lease
        self._decisions = decisions
        self._fallback = fallback
        self._leading = db.dedicated_session(pinned=False, lease=settings.lease)
        """Session of the leader's lease, so that it never waits for a pooled connection."""
        follow_ups = FollowUpSweep(db, policy, forges or {})
        own = {name: Isolation(db, name, named) for name, named in ISOLATED.items()}
        self._isolation = own
        parts = (reminders, firing, ladders, decisions, digests, rules, types, follow_ups)
        self._isolations = [*own.values(), *(part.isolation for part in parts)]
        limit = settings.limit
        self.names: Final[dict[str, Callable[[LeaderTerm], Awaitable[int]]]] = {
            "decisions": partial(repeat, self.decisions, limit),
            "expire": self.expire,
            "remind": partial(repeat, reminders.remind, limit),
            "ladders": partial(repeat, ladders.sweep, limit),
            "promote": partial(repeat, self.promote, limit),
            "schedules": firing.fire,
            "follow_ups": follow_ups.sweep,
            "limits": LimitSweep(db, limits).sweep,
            "budgets": BudgetSweep(db, budgets, timezone).sweep,
            "postponed": self.postponed,
            "rescue": partial(repeat, self.rescue, limit),
            "suspects": self.suspects,
            "deregister": self.deregister,
            "notify": partial(repeat, self.notify, limit),
            "types": types.sweep,
            "holds": Queues(db, policy, lease).sweep,
            "digests": partial(repeat, digests.sweep, limit),
            "rules": rules.sweep,
            "partitions": self.partitions,
            "prune": archives.prune,
        }

    async def run_now(self, name: str, actor: Actor) -> int:
        """Run a sweep; return the number of changed rows. Raises UsageError, NotPermitted."""
        self._policy.check(self._policy.resolve(actor), Verb.SWEEP)
        if name not in self.names:
            raise UsageError(f"unknown sweep {name!r}; choose: {', '.join(self.names)}")
        return await self.names[name](LeaderTerm())

    async def decisions(self, term: LeaderTerm) -> int:
        """Apply answers, decisions and cancels whose undo window has ended."""
        return await self._decisions.apply_due(term, self._settings.limit)

    async def expire(self, term: LeaderTerm) -> int:
        """Escalate or close expired questions, by their on_expire.

        Each statement passes the questions of the other, so one follows the other, not in turn.
        """
        limit = self._settings.limit

        async def escalate(term: LeaderTerm) -> int:
            return await self._isolated("escalate", store.escalate, term, limit)

        async def close(term: LeaderTerm) -> int:
            return await self._isolated("expire", store.expire, term, limit)

        return await run_all(
            lambda: repeat(escalate, limit, term), lambda: repeat(close, limit, term)
        )

    async def promote(self, term: LeaderTerm) -> int:
        """Queue scheduled and retrying jobs that are due."""
        return await self._isolated("promote", store.promote, term, self._settings.limit)

    async def postponed(self, term: LeaderTerm) -> int:
        """Give places and keys, and resolve children and groups, that transactions left."""

        async def work(term: LeaderTerm) -> int:
            return await self._isolated("do_postponed", store.do_postponed, term, POSTPONED)

        async def cancels(term: LeaderTerm) -> int:
            return await self._isolated("do_cancels", store.do_cancels, term, CANCELED)

        return await run_all(
            lambda: repeat(work, POSTPONED, term), lambda: repeat(cancels, CANCELED, term)
        )

    async def rescue(self, term: LeaderTerm, known_dead: Sequence[UUID] = ()) -> int:
        """Rescue the jobs of dead workers; `known_dead` are workers that have stopped.

        A worker is dead when its process on this host has ended, or when it was silent with its
        session lock free for 15 s and its process cannot be seen. As long as the lock is held, it
        is alive until its lease expires.
        """
        dead = [*await self._dead(), *known_dead]
        limit = self._settings.limit
        return await self._isolation["rescue"].run(
            lambda conn, selection: self.rescue_runs(conn, term, dead, selection),
            lambda conn, selection: store.candidates(
                conn, "rescue", term, limit, selection, dead=dead, lease=self._lease
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
        limit = self._settings.limit
        rescued = await store.rescue(conn, term, limit, selection, dead=dead, lease=self._lease)
        for job in rescued:
            if job.status is Status.FAILED and job.on_lost is OnLost.NEW_JOB:
                await _insert_replacement(conn, job.number)
        return len(rescued)

    async def suspects(self, term: LeaderTerm) -> int:
        """Try the jobs that were lost together, one at a time."""
        return await self._isolation["suspects"].run(
            lambda conn, selection: store.suspects(conn, term, selection),
            lambda conn, selection: store.candidates(conn, "suspects", term, 0, selection),
        )

    async def notify(self, term: LeaderTerm) -> int:
        """Send dead letters without a target to the fallback; without a fallback, log them."""
        return await self._isolated("notify", self._notify, term, self._settings.limit)

    async def deregister(self, term: LeaderTerm) -> int:
        """Delete dead workers that hold no jobs."""
        dead = await self._dead()
        after = self._settings.deregister_after
        return await self._isolation["deregister"].run(
            lambda conn, selection: store.deregister(conn, term, selection, dead=dead, after=after),
            lambda conn, selection: store.candidates(
                conn, "deregister", term, 0, selection, dead=dead, after=after
            ),
        )

    async def partitions(self, term: LeaderTerm) -> int:
        """Create the event partitions of the coming months."""
        return await self._db.run_transaction(
            lambda conn: store.partitions(conn, term, MONTHS_AHEAD)
        )

    @property
    def refused(self) -> dict[str, int]:
        """The number of rows that each sweep has set aside, as the database refuses them."""
        found = {each.sweep: len(each.aside) for each in self._isolations}
        return {sweep: count for sweep, count in found.items() if count}

    async def next_due(self) -> float | None:
        """Return the seconds until something is due; None when nothing is scheduled."""
        async with self._db.connection() as conn:
            return await store.next_due(conn)

    async def acquire(self, owner: UUID, seconds: float) -> int | None:
        """Acquire the leader's lease if it is free or its holder is dead; return the term."""
        dead = await self._dead()
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

    async def has_dead_local_workers(self) -> bool:
        """Return whether the process of a registered worker on this host has ended."""
        async with self._db.connection() as conn:
            processes = await workers.processes(conn)
        return any(
            liveness(host_id, pid, started) is Liveness.ENDED
            for _, host_id, pid, started in processes
        )

    async def _dead(self) -> list[UUID]:
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

    async def _notify(
        self, conn: Connection, term: LeaderTerm, limit: int, selection: Selection
    ) -> int:
        letters = await store.notify(conn, term, limit, self._fallback, selection)
        for number, invoker in letters if self._fallback is None else ():
            _log.error(
                "%s of %s is a dead letter and has no notification target",
                job_name(number),
                invoker,
            )
        return len(letters)

    async def _isolated(
        self,
        name: str,
        statement: Callable[[Connection, LeaderTerm, int, Selection], Awaitable[int]],
        term: LeaderTerm,
        limit: int,
    ) -> int:
        """Run a statement of at most `limit` rows."""
        return await self._isolation[name].run(
            lambda conn, selection: statement(conn, term, limit, selection),
            lambda conn, selection: store.candidates(conn, name, term, limit, selection),
        )


def seconds_between(name: str, interval: float) -> float:
    """Return the seconds between two runs of a sweep; `interval` is that of the configuration."""
    return min(max(interval, INTERVALS.get(name, 0.0)), URGENT.get(name, math.inf))


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
