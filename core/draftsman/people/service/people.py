"""People and their identities: configured, and linked with a code."""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from draftsman.channels import ChannelName, registry
from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import NotFound, UsageError
from draftsman.people.actor import Actor
from draftsman.people.directory import Directory, IdentityLink
from draftsman.people.policy import Policy, Verb, unlinked
from draftsman.people.store import people as store
from draftsman.text import clean

CODE_LIFE: Final = 900.0
"""Validity of a link code, in seconds."""
CODE_LENGTH: Final = 10
"""Characters of a link code, from an alphabet of 32: 50 bits."""
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_NAME_LIMIT: Final = 200
MAX_LINKS: Final = 1000
"""Maximum number of links listed."""


class People:
    """Resolution of actors to people, and links of identities.

    The owner of an embedded database needs no entry in the configuration.
    """

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def actor(self, actor: Actor) -> Actor:
        """Return the actor as configured, or else as the linked person.

        An unknown actor is returned without a person and without roles.
        """
        actor = self._policy.resolve(actor)
        if actor.person is not None:
            return actor
        async with self._db.connection() as conn:
            name = await store.person(conn, actor.channel, actor.id)
        if name is None:
            return actor
        return self._policy.remote(actor, self._policy.requester(name))

    async def create_link_code(self, actor: Actor) -> str:
        """Return a new code that links this identity to the person who enters it.

        It is valid once, for a quarter of an hour, and stored as a hash. Raises UsageError for a
        configured identity.
        """
        resolved = self._policy.resolve(actor)
        if resolved.person is not None:
            raise UsageError(
                f"this account is already linked to {resolved.person} in the configuration"
            )
        code = "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))
        name = clean(resolved.display_name)[:_NAME_LIMIT]

        async def work(conn: Connection) -> None:
            await store.create_link_code(
                conn,
                channel=resolved.channel,
                id=resolved.id,
                name=name,
                code_hash=_hash(code),
                seconds=CODE_LIFE,
            )

        await self._db.run_transaction(work)
        return code

    async def link(self, code: str, actor: Actor) -> IdentityLink:
        """Link the identity of this code to the person of the actor.

        Raises NotPermitted for an unknown actor, NotFound for an invalid code.
        """
        actor = self._policy.resolve(actor)
        person = actor.person
        if person is None:
            raise unlinked(actor)

        async def work(conn: Connection) -> IdentityLink | None:
            return await store.link(conn, _hash(code), person, actor.name)

        if (link := await self._db.run_transaction(work)) is None:
            raise NotFound("the code is invalid, used or expired; request a new code")
        return link

    async def unlink(self, channel: ChannelName, id: str, actor: Actor) -> str:
        """Unlink an identity from its person; return the person's name.

        An identity that is bound to an account keeps its person, and is bound to the next account
        that acts under it.
        People may unlink their own, operators any. Raises NotFound, NotPermitted.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> str | None:
            person = await store.person(conn, channel, id)
            plugin = registry.find(channel)
            if plugin is not None and plugin.facts.binds_accounts:
                person = self._policy.resolve(Actor(channel, id, id)).person or id
            if person is None:
                return None
            self._policy.check(actor, Verb.UNLINK, invoker=person)
            return None if await store.unlink(conn, channel, id) is None else person

        if (person := await self._db.run_transaction(work)) is None:
            raise NotFound(f"{channel}:{id} is not linked to a person")
        return person

    async def bind_account(self, actor: Actor, account_id: str) -> str:
        """Bind the identity of a person to its account, at the first use.

        Only of channels with the fact `binds_accounts`. Return the id of the account to which it is
        bound.
        """
        return await self._db.run_transaction(
            lambda conn: store.bind_account(conn, actor.channel, actor.id, account_id)
        )

    directory = on_connection(store.directory)

    async def save(self, new: Directory) -> None:
        """Replace the people in the database; raises Refused unless its owner does."""
        await self._db.run_transaction(lambda conn: store.save(conn, new))

    async def links(self) -> list[IdentityLink]:
        """Return the linked identities."""
        async with self._db.connection() as conn:
            return await store.links(conn, MAX_LINKS)


def _hash(code: str) -> str:
    """Return the hash of a code, ignoring case and punctuation."""
    plain = "".join(char for char in code.upper() if char.isalnum())
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()
