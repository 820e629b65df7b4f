"""Digests of questions, at the hours that people choose."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from zoneinfo import ZoneInfo

from draftsman import plugins
from draftsman.attention import store
from draftsman.attention.digests import (
    OFF,
    DigestHours,
    DigestQuestion,
    digest_payload,
    parse_hours,
)
from draftsman.channels import registry
from draftsman.database.database import Connection, Database, on_connection
from draftsman.database.isolation import Isolation
from draftsman.database.selection import Selection
from draftsman.deliveries.delivery import DeliveryKind
from draftsman.deliveries.store import deliveries
from draftsman.deliveries.target import Target
from draftsman.errors import NotPermitted, UsageError
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import checkpoints
from draftsman.jobs.runs.sweep import Sweep, repeat
from draftsman.people import visibility
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy

_log = logging.getLogger(__name__)


class Digests:
    """Hours of digests, and their messages."""

    def __init__(self, *, db: Database, policy: Policy, timezone: str, limit: int) -> None:
        """`timezone` is that of people without their own."""
        self._db = db
        self._policy = policy
        self._timezone = timezone
        self._limit = limit
        self._isolation = Isolation(db, "digests")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of digests."""
        return [
            Sweep(
                name="digests",
                description="sends digests of questions",
                run=partial(repeat, self.sweep, self._limit),
                isolations=(self._isolation,),
            )
        ]

    hours = on_connection(store.digest_hours)

    async def choose(
        self, text: str, actor: Actor, *, timezone: str | None = None, person: str | None = None
    ) -> DigestHours | None:
        """Set the hours of the actor's digests, `09:00,15:00`, or end them, `off`.

        An operator sets those of another `person`. Raises UsageError, NotPermitted.
        """
        actor = self._policy.resolve(actor)
        name = person or actor.voter
        if name != actor.voter and not (actor.owner or "operator" in actor.roles):
            raise NotPermitted(
                "may not change the digest of others (needs the role operator)",
                subject=actor.display_name,
                actor=actor.name,
            )
        if person is not None and person not in self._policy.people:
            names = ", ".join(sorted(self._policy.people)) or "none are configured"
            raise UsageError(f"unknown person {person!r}; people: {names}")
        if timezone is not None:
            _check_zone(timezone)
        hours = [] if text.strip().lower() == OFF else parse_hours(text)
        await self._db.run_transaction(
            lambda conn: store.choose_digest_hour(
                conn, name, hours=hours, timezone=timezone, default=self._timezone, actor=actor
            )
        )
        return await self.hours(name)

    async def sweep(self, term: LeaderTerm) -> int:
        """Send the digests that are due, for the leader; return the number of questions in them.

        A question is in a single digest of a person: at the shared target of a channel, at that of
        the person or in the log. The digest of a person outside of their hours waits.
        """

        async def work(conn: Connection, selection: Selection) -> int:
            now = await checkpoints.now(conn)
            people = self._policy.people.values()
            away = [person.name for person in people if person.free_at(now) > now]
            repos = visibility.restricted(people)
            due = await store.take_due_digests(
                conn, term, self._limit, away, repos, selection=selection
            )
            due = await _shared(conn, due)
            ordered = sorted(due, key=lambda item: (item.person, item.place))
            for (person, place), group in groupby(ordered, lambda item: (item.person, item.place)):
                questions = list(group)
                at = max(i.digest_at for i in questions)
                target = Target(place[0], place[1])
                key = f"digest {person} {at.isoformat()} {questions[0].job}"
                payload = digest_payload(questions)
                job = questions[0].job
                await deliveries.post(conn, job, target, key, DeliveryKind.DIGEST, payload)
            return len(due)

        return await self._isolation.run(
            work,
            lambda conn, selection: store.digest_candidates(conn, term, self._limit, selection),
        )


async def _shared(conn: Connection, due: list[DigestQuestion]) -> list[DigestQuestion]:
    """Return the questions with the targets that channels have for digests of their jobs."""
    jobs = sorted({item.job for item in due})
    for plugin in registry.channels() if jobs else ():
        if plugin.shared_digests is not None:
            try:
                async with conn.transaction():
                    targets = await plugins.resolve(plugin.shared_digests)(conn, jobs)
            except Exception:  # of another package, and no reason to send no digest
                _log.exception("%s: shared digests failed", plugin.label)
            else:
                due = [item.shared_in(plugin.name, targets) for item in due]
    return due


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"unknown time zone {name!r}; use a name such as Europe/Berlin") from None
