"""Sign-in of people in browsers: links and sessions."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import Final

from draftsman.channels import ChannelName
from draftsman.database.database import Database, on_connection
from draftsman.errors import NotFound, UsageError
from draftsman.people.actor import Actor
from draftsman.people.browser_session import BrowserSession, SignInMethod
from draftsman.people.policy import Policy, unlinked
from draftsman.people.store import browser_sessions as store
from draftsman.text import clean

LINK_SECONDS: Final = 900.0
"""Validity of a link, in seconds."""
_TOKEN_BYTES: Final = 32
_USER_AGENT: Final = 300
"""Stored characters of the header User-Agent."""


class BrowserSessions:
    """Tokens of links and sessions; the database has only their SHA-256."""

    def __init__(self, db: Database, policy: Policy) -> None:
        self._db = db
        self._policy = policy

    async def create_link(self, actor: Actor) -> tuple[str, datetime]:
        """Return a token that signs the actor's person in once, and its expiry.

        It replaces the person's previous link. Raises NotPermitted for an unknown actor.
        """
        actor = self._policy.resolve(actor)
        person = actor.person
        if person is None:
            raise unlinked(actor)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        return token, await self._db.run_transaction(
            lambda conn: store.create_link(conn, person, token_digest(token), LINK_SECONDS)
        )

    async def person_of_link(self, token: str) -> str | None:
        """Return the person that a link signs in, without using it; None if it is not valid."""
        async with self._db.connection() as conn:
            return await store.person_of_link(conn, token_digest(token))

    async def use_link(self, token: str, user_agent: str, seconds: float) -> str | None:
        """Use a link; return the token of the new session, None if the link is not valid."""
        return await self._open(SignInMethod.LINK, token_digest(token), None, user_agent, seconds)

    async def open(
        self, method: SignInMethod, person: str, user_agent: str, seconds: float
    ) -> str | None:
        """Open a session of a person that a proxy or an identity provider named.

        Return its token; None for an unknown person.
        """
        if not self._knows(person):
            return None
        return await self._open(method, None, person, user_agent, seconds)

    async def _open(
        self,
        method: SignInMethod,
        link: str | None,
        person: str | None,
        user_agent: str,
        seconds: float,
    ) -> str | None:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        agent = clean(user_agent)[:_USER_AGENT]
        opened = await self._db.run_transaction(
            lambda conn: store.open_session(
                conn,
                token_digest(token),
                method,
                link=link,
                person=person,
                user_agent=agent,
                seconds=seconds,
            )
        )
        return None if opened is None else token

    async def find(self, token: str, channel: ChannelName) -> tuple[BrowserSession, Actor] | None:
        """Return the session of a token, and its actor in the channel of the pages.

        None: it ended, or the person left.
        """
        async with self._db.connection() as conn:
            session = await store.find(conn, token_digest(token))
        if session is None or (actor := self.actor(channel, session.person)) is None:
            return None
        return session, actor

    def actor(self, channel: ChannelName, person: str) -> Actor | None:
        """Return the actor of a person in a channel of pages, None for an unknown person."""
        if not self._knows(person):
            return None
        return self._policy.remote(Actor(channel, person, person), person)

    async def close(self, token: str) -> None:
        """End the session of a token."""
        await self._db.run_transaction(lambda conn: store.close(conn, token_digest(token)))

    sessions = on_connection(store.sessions)

    async def end(self, session: int) -> None:
        """End a session; raises NotFound if there is none, or it is not the user's to end."""
        ended = await self._db.run_transaction(lambda conn: store.end(conn, session, None))
        if not ended:
            raise NotFound(f"there is no session {session} that you may end")

    async def end_all(self, person: str) -> int:
        """End all sessions of a person; return their number.

        Raises UsageError for an unknown person.
        """
        ended = await self._db.run_transaction(lambda conn: store.end(conn, None, person))
        if not ended and not self._knows(person):
            names = ", ".join(sorted(self._policy.people)) or "none are configured"
            raise UsageError(f"unknown person {person!r}; people: {names}")
        return ended

    def _knows(self, person: str) -> bool:
        return person == self._policy.owner or person in self._policy.people


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token, in hex."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
