"""The outbox as people and services use it: listing, redelivery, notices and files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.deliveries.delivery import (
    Delivery,
    DeliveryKind,
    DeliveryStatus,
    UnservedTarget,
    metrics_text,
)
from draftsman.deliveries.store import deliveries as store
from draftsman.deliveries.store import delivery_claims, rate_limits
from draftsman.deliveries.target import Target, Targets, configured_targets, parse
from draftsman.errors import CommandHint, NotFound, OptionHint, Refused, UsageError
from draftsman.formats.amounts import COUNT_LIMIT
from draftsman.ids import job_name, unknown_job
from draftsman.jobs.runs.run import Lease, lease_lost
from draftsman.jobs.runs.store import checkpoints, jobs
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.people.spans import Spans, encode_spans, spans_text
from draftsman.questions.permission_rules.permission_rule import ProposedRule, proposal_text
from draftsman.text import clean_within_limit

if TYPE_CHECKING:
    from draftsman.settings import Settings

PAYLOAD_LIMIT: Final = 100_000
"""Maximum size of a payload, in bytes of JSON."""
MAX_DEAD: Final = 1000
"""Maximum number of dead letters in one call; a further call handles the rest."""
LATE: Final = 300.0
"""Seconds after which a due delivery counts as not sent by any process."""


class Outbox:
    """Queries of deliveries, and new deliveries."""

    def __init__(self, *, db: Database, policy: Policy, settings: Settings) -> None:
        self._lease = settings.worker.lease
        self._db = db
        self._policy = policy
        self._settings = settings

    @cached_property
    def _targets(self) -> Targets:
        return configured_targets(self._settings)

    async def all(
        self,
        job: int | None = None,
        statuses: Sequence[DeliveryStatus] | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[Delivery]:
        """Return deliveries of a job or of all jobs, newest first.

        For all jobs, `before` is the seq of the last delivery on the previous page.
        """
        async with self._db.connection() as conn:
            if job is not None:
                return await store.of_job(conn, job, statuses, limit)
            return await store.page(conn, statuses or list(DeliveryStatus), limit, before)

    targets = on_connection(store.targets)
    paused = on_connection(rate_limits.paused)

    async def dead_letters(self, job: int | None = None) -> list[int]:
        """Return the oldest dead letters of a job or of all jobs, at most 1,000."""
        async with self._db.connection() as conn:
            if job is not None:
                return [seq for seq, _ in await store.dead_letters_of_job(conn, job, MAX_DEAD)]
            return [seq for seq, _ in await store.all_dead(conn, MAX_DEAD)]

    async def dead_letter_count(self) -> int:
        """Return how many of the newest 10,000 dead letters have no replacement."""
        async with self._db.connection() as conn:
            return await store.dead_letter_count(conn, COUNT_LIMIT)

    async def unserved(self) -> list[UnservedTarget]:
        """Return the targets with due deliveries that no process sends."""
        async with self._db.connection() as conn:
            return await delivery_claims.unserved(conn, self._lease, LATE)

    async def metrics(self) -> str:
        """Return the deliveries without a process in the text format of Prometheus."""
        return metrics_text(await self.unserved())

    async def unnotified(self) -> list[tuple[str, bool, int]]:
        """Return (invoker, opted out, count) of unfinished jobs without targets."""
        async with self._db.connection() as conn:
            return await store.unnotified(conn, MAX_DEAD)

    async def redeliver(self, seqs: Sequence[int], actor: Actor) -> list[int]:
        """Make dead letters due again; a copy that arrived before is searched for first.

        Return the deliveries that were dead letters. Raises NotPermitted, NotFound, and Refused
        where there are none.
        """
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.REDELIVER)

        async def work(conn: Connection) -> list[int]:
            statuses = await store.statuses_of(conn, seqs)
            if missing := [seq for seq in seqs if seq not in statuses]:
                raise NotFound(f"there is no delivery {missing[0]}", hint=CommandHint("deliveries"))
            dead = await store.dead_letters(conn, seqs)
            if not dead:
                problem = f"delivery {seqs[0]} is {statuses[seqs[0]]}, not a dead letter"
                raise Refused(f"{problem}; nothing to redeliver")
            await jobs.lock_jobs(conn, sorted({job for _, job in dead}))
            return await store.redeliver(conn, [seq for seq, _ in dead], actor.name)

        return await self._db.run_transaction(work) if seqs else []

    async def notice(
        self,
        job: int,
        key: str,
        text: str | Spans,
        *,
        at: Target | None = None,
        to: str | None = None,
        names_job: bool = False,
    ) -> int:
        """Send a notice to the targets of a job, once for each key; return their number.

        `at` restricts it to a target. `to`, a channel's own user id, restricts it to a person
        there, where the channel has private messages. `names_job` tells whether the text begins
        with the job's name, which messages otherwise put in front.
        """
        payload: dict[str, Any] = {"text": text if isinstance(text, str) else spans_text(text)}
        payload |= {} if isinstance(text, str) else {"spans": encode_spans(text)}
        payload |= {"to": to} if to else {}
        payload |= {"names_job": True} if names_job else {}
        return await self._enqueue(job, DeliveryKind.NOTICE, f"notice:{key}", payload, at=at)

    async def notify(
        self, lease: Lease, key: str, targets: Sequence[str], text: str, *, required: bool = True
    ) -> list[int]:
        """Send a notice of a run, once for each key; return the numbers of the deliveries.

        A target is `log`, `webhook:NAME`, …; without targets the job's own are used. The messages
        are written with the run's lease, in one transaction. Raises LeaseLost, and UsageError for
        an invalid target, or without any if one is `required`.
        """
        destinations = [parse(target) for target in targets]
        for target in destinations:
            self._targets.check(target)
        payload: dict[str, Any] = {"text": text}
        if re.match(rf"D-{lease.job}(?!\d)", text):  # a handler's own text
            payload["names_job"] = True
        payload = clean_within_limit(payload, PAYLOAD_LIMIT, "a notice")

        async def work(conn: Connection) -> list[int]:
            if not await store.notify(conn, lease, f"notify:{key}", payload, destinations):
                raise lease_lost(lease)
            return await store.of_key(conn, lease.job, f"notify:{key}")

        deliveries = await self._db.run_transaction(work)
        if deliveries or not required:
            return deliveries
        raise UsageError(
            "has no targets",
            subject=job_name(lease.job),
            hint=OptionHint("notify", lead="name targets, or submit the job with"),
        )

    async def add_target(self, lease: Lease, target: Target) -> None:
        """Add a target to the job of a run; an existing one stays as it is. Raises LeaseLost."""

        async def work(conn: Connection) -> bool:
            if owned := await jobs.lock_run(conn, lease):
                await store.add_targets(conn, [(lease.job, [target])])
            return owned

        if not await self._db.run_transaction(work):
            raise lease_lost(lease)

    async def announce_rule(self, target: Target, conn: Connection, rule: ProposedRule) -> None:
        """Write the message about a proposed permission rule, once, in the caller's transaction."""
        payload = {"text": proposal_text(rule), "names_job": True, "rule": rule.id}
        await store.post(conn, rule.job, target, rule.key, DeliveryKind.NOTICE, payload)

    async def file(self, job: int, name: str) -> int:
        """Send the newest artifact of that name to the targets of a job, once; return their number.

        Raises NotFound.
        """
        async with self._db.connection() as conn:
            artifact = await checkpoints.find_artifact(conn, job, name)
        if artifact is None:
            raise NotFound(
                f"has no artifact {name!r}",
                subject=job_name(job),
                hint=CommandHint("artifacts", job_name(job)),
            )
        payload = {"artifact": artifact.id, "name": artifact.name}
        return await self._enqueue(job, DeliveryKind.FILE, f"file:{artifact.id}", payload)

    async def _enqueue(
        self,
        job: int,
        kind: DeliveryKind,
        key: str,
        payload: dict[str, Any],
        at: Target | None = None,
    ) -> int:
        payload = clean_within_limit(payload, PAYLOAD_LIMIT, f"a {kind}")

        async def work(conn: Connection) -> int:
            if not await jobs.lock(conn, job):
                raise unknown_job(job)
            return await store.enqueue(conn, job, kind, key, payload, at)

        return await self._db.run_transaction(work)
