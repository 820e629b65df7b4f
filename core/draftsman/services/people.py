"""identity -> person: what is configured, and what somebody joined with a code."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from typing import Final

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.directory import Directory
from draftsman.domain.people.policy import Policy, Verb
from draftsman.domain.text import clean
from draftsman.errors import NotFound, NotPermitted, UsageError
from draftsman.store import people as store
from draftsman.store.people import IdentityLink as IdentityLink  # of `links`, for those who show it
from draftsman.store.postgres.database import Connection, Database

CODE_LIFE: Final = 900.0
"""Seconds that a code can be used."""
CODE_LENGTH: Final = 10
"""Of 32 signs: 50 bits, for a quarter of an hour, asked only of people who are known already."""
_SIGNS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_NAME_LIMIT: Final = 200
MAX_LINKS: Final = 1000
"""Links that one call lists."""


class People:
    """Says who an actor is, and joins identities to people.

    The owner of an embedded database needs no entry in the configuration.
    """

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def actor(self, actor: Actor) -> Actor:
        """Return the actor as the configuration knows it, or else as the person it was joined to.

        Somebody who is neither comes back without a person and without roles.
        """
        actor = self._policy.resolve(actor)
        if actor.person is not None:
            return actor
        async with self._db.connection() as conn:
            name = await store.person(conn, actor.channel, actor.id)
        if name is None:
            return actor
        name = self._policy.requester(name)
        person, owner = self._policy.people.get(name), self._policy.owner
        if person is not None and name != owner:
            return replace(actor, person=name, roles=person.roles)
        return self._policy.resolve(replace(actor, person=name, owner=name == owner))

    async def create_link_code(self, actor: Actor) -> str:
        """Return a new code that joins this identity to whoever enters it; only its hash is kept.

        It counts once, and for a quarter of an hour. Raises UsageError for one that is configured.
        """
        known = self._policy.resolve(actor)
        if known.person is not None:
            raise UsageError(f"the configuration says who you are already: {known.person}")
        code = "".join(secrets.choice(_SIGNS) for _ in range(CODE_LENGTH))
        name = clean(known.display_name)[:_NAME_LIMIT]

        async def work(conn: Connection) -> None:
            await store.create_link_code(
                conn, known.channel, known.id, name, _hash(code), CODE_LIFE
            )

        await self._db.run_transaction(work)
        return code

    async def link(self, code: str, actor: Actor) -> IdentityLink:
        """Join the identity that was given this code to the person of the actor.

        Raises NotPermitted for an actor who is nobody, NotFound for a code that does not count.
        """
        actor = self._policy.resolve(actor)
        person = actor.person
        if person is None:
            raise NotPermitted(f"{actor.display_name} is not mapped to a person; add [people]")

        async def work(conn: Connection) -> IdentityLink | None:
            return await store.link(conn, _hash(code), person, actor.name)

        if (found := await self._db.run_transaction(work)) is None:
            raise NotFound("this code is not known, was used, or is too old; ask for a new one")
        return found

    async def unlink(self, channel: Source, id: str, actor: Actor) -> str:
        """Part an identity from its person, whose name comes back.

        People may part their own, operators any. Raises NotFound, NotPermitted.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> str | None:
            person = await store.person(conn, channel, id)
            if person is not None:
                self._policy.check(actor, Verb.UNLINK, invoker=person)
                await store.unlink(conn, channel, id)
            return person

        if (found := await self._db.run_transaction(work)) is None:
            raise NotFound(f"{channel}:{id} is joined to nobody")
        return found

    async def directory(self) -> Directory:
        """Return the people of the database."""
        async with self._db.connection() as conn:
            return await store.directory(conn)

    async def save(self, new: Directory) -> None:
        """Replace the people of the database; raises Refused for all but its owner."""
        await self._db.run_transaction(lambda conn: store.save(conn, new))

    async def links(self) -> list[IdentityLink]:
        """Return who was joined to whom."""
        async with self._db.connection() as conn:
            return await store.links(conn, MAX_LINKS)


def _hash(code: str) -> str:
    """Return the hash of a code, however its letters were typed."""
    plain = "".join(char for char in code.upper() if char.isalnum())
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()
