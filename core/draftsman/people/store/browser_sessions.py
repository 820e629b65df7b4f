"""Sign-in links, and sessions of browsers."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final, cast

from draftsman.database.database import Connection, execute, fetch_all, fetch_one, scalar
from draftsman.database.named_queries import load
from draftsman.people.browser_session import BrowserSession, SignInMethod

MAX_SESSIONS: Final = 1000
"""Maximum number of sessions listed."""
_Q = load(__name__)


async def create_link(conn: Connection, person: str, digest: str, seconds: float) -> datetime:
    """Store the digest of a new link of a person; return its expiry."""
    params = {"person": person, "digest": digest, "seconds": seconds}
    return cast("datetime", await scalar(conn, _Q["create_link"], params))


async def person_of_link(conn: Connection, digest: str) -> str | None:
    """Return the person of a link; None if it was used, replaced or has expired."""
    return cast("str | None", await scalar(conn, _Q["person_of_link"], {"digest": digest}))


async def open_session(
    conn: Connection,
    digest: str,
    method: SignInMethod,
    *,
    link: str | None,
    person: str | None,
    user_agent: str,
    seconds: float,
) -> str | None:
    """Store a session of a link's person, or of `person`; return its person.

    None: the link was used, replaced or has expired.
    """
    params = {
        "link": link,
        "person": person,
        "method": method,
        "digest": digest,
        "user_agent": user_agent,
        "seconds": seconds,
    }
    return cast("str | None", await scalar(conn, _Q["open_session"], params))


async def find(conn: Connection, digest: str) -> BrowserSession | None:
    """Return the session of a token's digest, unless it has ended."""
    row = await fetch_one(conn, _Q["find"], {"digest": digest}, BrowserSession)
    return None if row is None else _with_method(row)


async def close(conn: Connection, digest: str) -> None:
    """End the session of a token's digest."""
    await execute(conn, _Q["close"], {"digest": digest})


async def sessions(conn: Connection, limit: int = MAX_SESSIONS) -> list[BrowserSession]:
    """Return the sessions that this database session may end."""
    rows = await fetch_all(conn, _Q["sessions"], {"limit": limit}, BrowserSession)
    return [_with_method(row) for row in rows]


async def end(conn: Connection, session: int | None, person: str | None) -> int:
    """End a session, or all sessions of a person; return how many ended."""
    return int(await scalar(conn, _Q["end"], {"session": session, "person": person}))


def _with_method(row: BrowserSession) -> BrowserSession:
    return replace(row, method=SignInMethod(row.method))
