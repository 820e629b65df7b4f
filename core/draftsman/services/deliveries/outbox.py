"""What people and other services do with the outbox: look, send again, say something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.messages.delivery import Delivery, DeliveryKind, DeliveryStatus
from draftsman.domain.messages.target import Target, Targets, parse
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy, Verb
from draftsman.domain.run import Lease
from draftsman.domain.text import clean_within_limit
from draftsman.errors import CommandHint, LeaseLost, NotFound, Refused, UsageError
from draftsman.store import checkpoints
from draftsman.store import deliveries as store
from draftsman.store.postgres.database import Connection, Database

PAYLOAD_LIMIT: Final = 100_000
"""Bytes of what a service says, as JSON."""
MAX_DEAD: Final = 1000
"""Dead deliveries that one call sends again; the rest with the next."""
COUNT_LIMIT: Final = 10_000
"""Dead deliveries that are counted."""


class Outbox:
    """The rows that nobody has to write by hand: reading them, and adding to them."""

    def __init__(self, db: Database, policy: Policy, targets: Targets) -> None:
        self._db = db
        self._policy = policy
        self._targets = targets

    async def all(
        self,
        job: int | None = None,
        statuses: Sequence[DeliveryStatus] | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[Delivery]:
        """Return deliveries, newest first: of a job, or of all.

        Of all, `before` is the seq that the last page ended with.
        """
        async with self._db.connection() as conn:
            if job is not None:
                return await store.of_job(conn, job, statuses, limit)
            return await store.page(conn, statuses or list(DeliveryStatus), limit, before)

    async def targets(self, job: int) -> list[store.TargetRow]:
        """Return where the messages of a job go."""
        async with self._db.connection() as conn:
            return await store.targets(conn, job)

    async def dead(self, job: int | None = None) -> list[int]:
        """Return the oldest dead deliveries, of a job or of all, at most a thousand."""
        async with self._db.connection() as conn:
            if job is not None:
                return [seq for seq, _ in await store.dead_of_job(conn, job, MAX_DEAD)]
            return [seq for seq, _ in await store.all_dead(conn, MAX_DEAD)]

    async def dead_count(self) -> int:
        """Return how many of the newest 10,000 dead deliveries nothing else said instead."""
        async with self._db.connection() as conn:
            return await store.dead_count(conn, COUNT_LIMIT)

    async def unnotified(self) -> list[tuple[str, bool, int]]:
        """Return (invoker, whether they want none, count) of unfinished jobs without targets."""
        async with self._db.connection() as conn:
            return await store.unnotified(conn, MAX_DEAD)

    async def redeliver(self, seqs: Sequence[int], actor: Actor) -> list[int]:
        """Try dead deliveries anew, each first looked for where it may have arrived.

        Return those that were dead. Raises NotPermitted, NotFound, and Refused where none of them
        is dead.
        """
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.REDELIVER)

        async def work(conn: Connection) -> list[int]:
            known = await store.statuses_of(conn, seqs)
            if missing := [seq for seq in seqs if seq not in known]:
                raise NotFound(f"there is no delivery {missing[0]}", hint=CommandHint("deliveries"))
            found = await store.dead(conn, seqs)
            if not found:
                how = f"delivery {seqs[0]} is {known[seqs[0]]}, not dead"
                raise Refused(f"{how}; nothing to send again")
            await store.lock_jobs(conn, sorted({job for _, job in found}))
            return await store.redeliver(conn, [seq for seq, _ in found], actor.name)

        return await self._db.run_transaction(work) if seqs else []

    async def notice(
        self, job: int, key: str, text: str, *, at: Target | None = None, to: str | None = None
    ) -> int:
        """Say something to the targets of a job, once for a key; return to how many.

        `at` is the only target that hears it; `to`, a person by the channel's own id, the only one
        there who sees it, where the channel can keep a word private.
        """
        payload = {"text": text} | ({"to": to} if to else {})
        return await self._say(job, DeliveryKind.NOTICE, f"notice:{key}", payload, at=at)

    async def notify(self, lease: Lease, key: str, targets: Sequence[str], text: str) -> list[int]:
        """Say something that a run wants said: to these targets, or to those of its job.

        See `ports.Notify`.
        """
        at = [parse(one) for one in targets]
        for target in at:
            self._targets.check(target)
        payload = clean_within_limit({"text": text}, PAYLOAD_LIMIT, "a notice")

        async def work(conn: Connection) -> list[int]:
            if not await store.notify(conn, lease, f"notify:{key}", payload, at):
                raise LeaseLost(f"run {lease.run} no longer owns D-{lease.job}")
            return await store.of_key(conn, lease.job, f"notify:{key}")

        if found := await self._db.run_transaction(work):
            return found
        raise UsageError(f"D-{lease.job} tells nobody: name targets, or submit it with --notify")

    async def file(self, job: int, name: str) -> int:
        """Send the newest artifact of that name to the targets of a job, once; return to how many.

        Raises NotFound.
        """
        async with self._db.connection() as conn:
            found = await checkpoints.find_artifact(conn, job, name)
        if found is None:
            raise NotFound(
                f"has no artifact {name!r}",
                subject=f"D-{job}",
                hint=CommandHint("artifacts", f"D-{job}"),
            )
        payload = {"artifact": found.id, "name": found.name}
        return await self._say(job, DeliveryKind.FILE, f"file:{found.id}", payload)

    async def _say(
        self,
        job: int,
        kind: DeliveryKind,
        key: str,
        payload: dict[str, Any],
        at: Target | None = None,
    ) -> int:
        payload = clean_within_limit(payload, PAYLOAD_LIMIT, f"a {kind}")

        async def work(conn: Connection) -> int:
            if not await store.lock(conn, job):
                raise NotFound(f"there is no job D-{job}", hint=CommandHint("jobs"))
            return await store.enqueue(conn, job, kind, key, payload, at)

        return await self._db.run_transaction(work)
