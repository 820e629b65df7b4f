"""Queues: list, pause, resume and drain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from draftsman.database.database import Connection, Database, on_connection
from draftsman.database.isolation import run_all
from draftsman.errors import CommandHint, NotFound, OptionHint, Refused, UsageError
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.formats.near_names import near_or_all
from draftsman.ids import account_name, job_name, pause_name, unknown_job
from draftsman.jobs.fits import MOVABLE, PRIORITIZED
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.queues import store
from draftsman.queues.queue_models import (
    QueuedJob,
    QueuePause,
    QueueSummary,
    UnhandledType,
    check_priority,
    metrics_text,
)
from draftsman.sizes import JOB_TYPE, QUEUE, check_length
from draftsman.text import clean
from draftsman.worker.registry import store as workers
from draftsman.worker.registry.registered_worker import ServingWorker, missing_worker

if TYPE_CHECKING:
    from draftsman.jobs.requests.service.request_checks import RequestChecks

BATCH: Final = 5_000
"""Jobs that a transaction holds or releases."""
REASON_LIMIT: Final = 2000
"""Maximum length of a stored reason, in characters."""
"""The highest priority, as of a request; the lowest is its negative."""
DRAIN_INTERVAL: Final = 0.5
"""Seconds between two looks at the running jobs of a drained queue."""

Place = Literal["top", "bottom", "before", "after"]
"""Where a job is moved to; before and after have an anchor."""
_Change = Callable[[Connection, LeaderTerm, int], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """The jobs of a paused queue that still run; `claims` are claims that may add to them."""

    running: list[int]
    claims: int

    @property
    def finished(self) -> bool:
        """Whether nothing runs, and nothing can start."""
        return not self.running and not self.claims


class Queues:
    """Queues and their pauses.

    A pause takes effect with its commit: the claim reads the pauses. The jobs of a paused type are
    also taken out of the claim's index, so that a claim does not pass them again and again; that is
    done in batches, by the command and by the leader's sweep.
    """

    def __init__(self, db: Database, policy: Policy, lease: float) -> None:
        self._db = db
        self._policy = policy
        self._lease = lease

    async def all(self) -> list[QueueSummary]:
        """Return the queues that have jobs, a pause or a live worker."""
        async with self._db.connection() as conn, conn.transaction():
            pauses = await store.pauses(conn)
            reserved = {item.queue: item for item in await store.reservations(conn)}
            summaries = await store.queues(conn, self._lease, COUNT_LIMIT)
            unhandled = await store.waiting_for_types(conn, self._lease, COUNT_LIMIT)
        return [
            replace(
                summary,
                pauses=tuple(p for p in pauses if p.queue == summary.name),
                reservation=reserved.get(summary.name),
                unhandled=tuple(item for item in unhandled if item.queue == summary.name),
            )
            for summary in summaries
        ]

    async def require_known(
        self, queue: str, type: str | None, actor: Actor, checks: RequestChecks
    ) -> None:
        """Raise NotFound for an unknown queue, and RejectedField for an unknown type in it.

        Raises NotPermitted for an actor who may not pause queues.
        """
        self._check(actor)
        await self._require_queue(queue, checks.queue_names)
        if type is not None and not await self.is_used(queue, type):
            await checks.check_type(type)

    async def _require_queue(self, queue: str, configured: Collection[str]) -> None:
        """Raise NotFound unless a queue is configured, or has jobs, a worker or a history."""
        if queue in configured:
            return
        names = {summary.name for summary in await self.all()} | set(configured)
        if queue in names:
            return
        if await self.is_used(queue):
            return
        tail = near_or_all(queue, sorted(names), "known queues")
        raise NotFound(
            f"unknown queue {queue!r}: it has no jobs, no worker and no setting{tail}",
            hint=OptionHint("unchecked", lead="to name a queue before its first job, use"),
        )

    is_used = on_connection(store.is_used)

    async def pauses(self, queue: str) -> list[QueuePause]:
        """Return the pauses of a queue and of types in it."""
        async with self._db.connection() as conn:
            return [pause for pause in await store.pauses(conn) if pause.queue == queue]

    changes = on_connection(store.queue_changes)

    async def pause(self, queue: str, actor: Actor, reason: str, type: str | None = None) -> int:
        """Pause a queue, or a type in it; return the number of jobs that were held.

        Raises NotPermitted, and Refused where it is already paused.
        """
        actor = self._check(actor)
        queue = _name("queue", queue)
        type = _name("type", type) if type is not None else None
        reason = clean(reason).strip()[:REASON_LIMIT]
        if not reason:
            raise UsageError("a pause needs a reason, which `why` shows for each held job")
        if not await self._db.run_transaction(
            lambda conn: store.pause(conn, queue, type, reason, actor.name)
        ):
            raise _already_paused(await self.pauses(queue), queue, type)
        return await self.hold()

    async def resume(self, queue: str, actor: Actor, type: str | None = None) -> int:
        """End a pause; return the number of jobs that were released.

        Raises NotPermitted, and Refused where it is not paused.
        """
        actor = self._check(actor)
        if not await self._db.run_transaction(
            lambda conn: store.resume(conn, queue, type, actor.name)
        ):
            raise _not_paused(await self.pauses(queue), queue, type)
        return await self.release()

    limit_changes = on_connection(store.limit_changes)
    limits = on_connection(store.limit_uses)

    async def release_reservation(self, queue: str, actor: Actor) -> int:
        """End the reservation of a queue; return its job, which keeps its place in the queue.

        Raises NotPermitted, and Refused where the queue is not reserved.
        """
        actor = self._check(actor, Verb.RESERVE)
        job = await self._db.run_transaction(
            lambda conn: store.release_reservation(conn, queue, actor.name)
        )
        if job is None:
            raise Refused(f"the queue {queue!r} is not reserved", hint=CommandHint("queues list"))
        return job

    async def order(self, limit: int = 50, queue: str | None = None) -> list[QueuedJob]:
        """Return the jobs that can be claimed, by queue, in the order of the claim."""
        async with self._db.connection() as conn:
            jobs = await store.in_order(conn, limit, queue)
            serving = await workers.serving(conn, self._lease)
        return [replace(job, hold=missing_worker(serving, job.queue, job.type)) for job in jobs]

    async def waiting_for_types(self) -> list[UnhandledType]:
        """Return the types of queues with jobs that wait for a worker that handles them."""
        async with self._db.connection() as conn:
            return await store.waiting_for_types(conn, self._lease, COUNT_LIMIT)

    unhandled_types = on_connection(store.unhandled_types)

    async def metrics(self) -> str:
        """Return the jobs of types without a worker in the text format of Prometheus."""
        return metrics_text(await self.waiting_for_types())

    async def serving(self) -> list[ServingWorker]:
        """Return the workers that claim jobs now."""
        async with self._db.connection() as conn:
            return await workers.serving(conn, self._lease)

    held = on_connection(store.held_in_order)

    async def move(self, job: int, place: Place, actor: Actor, anchor: int | None = None) -> None:
        """Move a queued job before or after another job of its queue, or to the top or bottom.

        It takes the priority of the job that it is moved to. Raises NotFound, NotPermitted, and
        Refused for a job that is not queued, or in another queue.
        """
        actor = self._check(actor, Verb.ORDER)
        if anchor == job:
            raise UsageError(f"{job_name(job)} cannot be moved {place} itself")

        async def work(conn: Connection) -> tuple[str, Status]:
            unknown = await job_store.missing(conn, [job, *filter(None, [anchor])])
            if unknown is not None:
                raise unknown_job(unknown)
            return await store.move(conn, job, place, anchor, actor.name)

        outcome, status = await self._db.run_transaction(work)
        if outcome == "queue":
            raise Refused(f"{job_name(anchor or 0)} is in another queue than {job_name(job)}")
        if outcome != "moved":
            name = job_name(job if outcome == "job" else anchor or 0)
            raise MOVABLE.refusal(name, status)

    async def prioritize(self, job: int, priority: int, actor: Actor) -> None:
        """Change the priority of a job that is queued, scheduled or retrying.

        Raises NotFound, NotPermitted, UsageError, and Refused in any other status.
        """
        actor = self._check(actor, Verb.ORDER)
        check_priority(priority)

        async def work(conn: Connection) -> tuple[str, Status]:
            if await job_store.missing(conn, [job]) is not None:
                raise unknown_job(job)
            return await store.prioritize(conn, job, priority, actor.name)

        outcome, status = await self._db.run_transaction(work)
        if outcome != "moved":
            raise PRIORITIZED.refusal(job_name(job), status)

    async def drain(
        self, queue: str, actor: Actor, reason: str, type: str | None = None
    ) -> AsyncGenerator[DrainProgress]:
        """Pause a queue unless it is paused, and yield what still runs until nothing does.

        A claim that began before the pause is waited for: its jobs are not visible yet.
        """
        if not any(pause.type in (None, type) for pause in await self.pauses(queue)):
            await self.pause(queue, actor, reason, type)
        async with self._db.connection() as conn:
            earlier = await store.claiming(conn)
        while True:
            async with self._db.connection() as conn:
                earlier &= await store.claiming(conn)
                progress = DrainProgress(await store.running(conn, queue, type), len(earlier))
            yield progress
            if progress.finished:
                return
            await asyncio.sleep(DRAIN_INTERVAL)

    async def hold(self) -> int:
        """Hold the jobs of paused types that the claim would pass; return their number."""
        return await self._in_batches(store.hold_jobs)

    async def release(self) -> int:
        """Release held jobs whose type is no longer paused; return their number."""
        return await self._in_batches(store.release_jobs)

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of held jobs."""
        return [
            Sweep(
                name="holds",
                description="holds jobs of paused types, and releases others",
                run=self.sweep,
                due=DueTime(DueTurn.OTHERS, store.HOLDS_DUE),
            )
        ]

    async def sweep(self, term: LeaderTerm) -> int:
        """Hold jobs of paused types; release jobs of an interrupted resume and of free keys.

        Reservations that have expired are deleted, which wakes the workers.
        """

        def repeated(change: _Change) -> Callable[[], Awaitable[int]]:
            async def batch(term: LeaderTerm) -> int:
                return await self._db.run_transaction(lambda conn: change(conn, term, BATCH))

            return partial(repeat, batch, 1, term)

        steps = (store.assign, store.expire_reservations, store.release_jobs, store.hold_jobs)
        return await run_all(*(repeated(step) for step in steps))

    async def _in_batches(self, change: _Change) -> int:
        total = 0
        while some := await self._db.run_transaction(
            lambda conn: change(conn, LeaderTerm(), BATCH)
        ):
            total += some
        return total

    def _check(self, actor: Actor, verb: Verb = Verb.QUEUES) -> Actor:
        actor = self._policy.resolve(actor)
        self._policy.check(actor, verb)
        return actor


def _name(kind: str, text: str) -> str:
    name: str = clean(text).strip()
    if not name:
        raise UsageError(f"the name of the {kind} is empty")
    return check_length(name, QUEUE if kind == "queue" else JOB_TYPE, f"the {kind}")


def _already_paused(pauses: list[QueuePause], queue: str, type: str | None) -> Refused:
    pause = next((pause for pause in pauses if pause.type == type), None)
    by = f" by {account_name(pause.paused_by)}: {pause.reason}" if pause else ""
    return Refused(f"the {pause_name(queue, type)} is already paused{by}")


def _not_paused(pauses: list[QueuePause], queue: str, type: str | None) -> Refused:
    paused = [f"the {pause.name}" for pause in pauses]
    return Refused(
        f"the {pause_name(queue, type)} is not paused"
        + (f"; paused: {', '.join(paused)}" if paused else ""),
        hint=CommandHint("queues list"),
    )
