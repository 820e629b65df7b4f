"""What people and other services do with the outbox: look, send again, say something."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from draftsman.domain.actor import Actor
from draftsman.domain.delivery import Delivery, DeliveryKind, DeliveryStatus
from draftsman.domain.policy import Policy, Verb
from draftsman.domain.text import bounded
from draftsman.errors import NotFound, Refused
from draftsman.store import deliveries as store
from draftsman.store.db import Connection, Database

PAYLOAD_LIMIT: Final = 100_000
"""Bytes of what a service says, as JSON."""
MANY: Final = 1000
"""Dead deliveries that one call sends again; the rest with the next."""
COUNTED: Final = 10_000
"""Dead deliveries that are counted."""
_log = logging.getLogger(__name__)


class Outbox:
    """The rows that nobody has to write by hand: reading them, and adding to them."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def all(
        self,
        job: int | None = None,
        statuses: Sequence[DeliveryStatus] | None = None,
        limit: int = 50,
    ) -> list[Delivery]:
        """Return deliveries, newest first: of a job, or of all."""
        async with self._db.connection() as conn:
            if job is not None:
                return await store.of_job(conn, job, statuses, limit)
            return await store.page(conn, statuses or list(DeliveryStatus), limit)

    async def targets(self, job: int) -> list[store.TargetRow]:
        """Return where the messages of a job go."""
        async with self._db.connection() as conn:
            return await store.targets(conn, job)

    async def dead(self, job: int | None = None) -> list[int]:
        """Return the oldest dead deliveries, of a job or of all, at most a thousand."""
        async with self._db.connection() as conn:
            if job is not None:
                return [seq for seq, _ in await store.dead_of_job(conn, job, MANY)]
            return [seq for seq, _ in await store.all_dead(conn, MANY)]

    async def dead_count(self) -> int:
        """Return how many deliveries are dead, counted up to 10,000."""
        async with self._db.connection() as conn:
            return await store.dead_count(conn, COUNTED)

    async def redeliver(self, seqs: Sequence[int], actor: Actor) -> list[int]:
        """Try dead deliveries anew, each first looked for where it may have arrived.

        Return those that were dead. Raises NotPermitted, NotFound, and Refused where none of them
        is dead.
        """
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.REDELIVER)
        async with self._db.connection() as conn:
            known = await store.known(conn, seqs)
            found = await store.dead(conn, seqs)
        if missing := [seq for seq in seqs if seq not in known]:
            raise NotFound(f"there is no delivery {missing[0]}; see: draftsman deliveries")
        if not found:
            seq = seqs[0]
            raise Refused(f"delivery {seq} is {known[seq]}, not dead; nothing to send again")
        revived = []
        for job in sorted({job for _, job in found}):
            mine = [seq for seq, number in found if number == job]

            async def work(conn: Connection, job: int = job, mine: list[int] = mine) -> list[int]:
                await store.lock(conn, job)
                return await store.redeliver(conn, job, mine, actor.name)

            revived += await self._db.arrow(work)
        return sorted(revived)

    async def notice(self, job: int, key: str, text: str) -> int:
        """Say something to the targets of a job, once for a key; return to how many."""
        return await self._say(job, DeliveryKind.NOTICE, f"notice:{key}", {"text": text})

    async def remind(self, job: int, question: int, key: str, text: str) -> int:
        """Remind the targets of a job of a question that is open, once for a key."""
        what = f"reminder:{question}:{key}"
        return await self._say(job, DeliveryKind.REMINDER, what, {"text": text}, question)

    async def file(self, job: int, artifact: int, name: str) -> int:
        """Send a stored file to the targets of a job, once; return to how many."""
        payload = {"artifact": artifact, "name": name}
        return await self._say(job, DeliveryKind.FILE, f"file:{artifact}", payload)

    async def _say(
        self,
        job: int,
        kind: DeliveryKind,
        key: str,
        payload: dict[str, Any],
        question: int | None = None,
    ) -> int:
        payload = bounded(payload, PAYLOAD_LIMIT, f"a {kind}")

        async def work(conn: Connection) -> int:
            if not await store.lock(conn, job):
                raise NotFound(f"there is no job D-{job}; see: draftsman jobs")
            return await store.say(conn, job, kind, key, payload, question)

        return await self._db.arrow(work)
