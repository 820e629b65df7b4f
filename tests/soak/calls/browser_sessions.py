"""Sign-in links and sessions of the web inbox."""

from __future__ import annotations

from typing import Final

from draftsman.people.browser_session import SignInMethod
from draftsman.people.store import browser_sessions
from tests.soak.calls.call import Call

DIGEST: Final = "0" * 64

CALLS: Final[dict[str, Call]] = {
    "browser_sessions.create_link": Call(
        lambda conn: browser_sessions.create_link(conn, "anna", DIGEST, 900)
    ),
    "browser_sessions.person_of_link": Call(
        lambda conn: browser_sessions.person_of_link(conn, DIGEST)
    ),
    "browser_sessions.open_session": Call(
        lambda conn: browser_sessions.open_session(
            conn,
            DIGEST,
            SignInMethod.LINK,
            link=DIGEST,
            person=None,
            user_agent="",
            seconds=600,
        )
    ),
    "browser_sessions.find": Call(lambda conn: browser_sessions.find(conn, DIGEST)),
    "browser_sessions.close": Call(lambda conn: browser_sessions.close(conn, DIGEST)),
    "browser_sessions.sessions": Call(lambda conn: browser_sessions.sessions(conn, 1000)),
    "browser_sessions.end": Call(lambda conn: browser_sessions.end(conn, 1, None)),
}
