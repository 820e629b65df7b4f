"""Sign-in links and sessions of the web inbox."""

from __future__ import annotations

from typing import Final

from draftsman.people.store import web_sessions
from draftsman.people.web_session import SignInMethod
from tests.soak.calls.call import Call

DIGEST: Final = "0" * 64

CALLS: Final[dict[str, Call]] = {
    "web_sessions.create_link": Call(
        lambda conn: web_sessions.create_link(conn, "anna", DIGEST, 900)
    ),
    "web_sessions.person_of_link": Call(lambda conn: web_sessions.person_of_link(conn, DIGEST)),
    "web_sessions.open_session": Call(
        lambda conn: web_sessions.open_session(
            conn,
            DIGEST,
            SignInMethod.LINK,
            link=DIGEST,
            person=None,
            user_agent="",
            seconds=600,
        )
    ),
    "web_sessions.find": Call(lambda conn: web_sessions.find(conn, DIGEST)),
    "web_sessions.close": Call(lambda conn: web_sessions.close(conn, DIGEST)),
    "web_sessions.sessions": Call(lambda conn: web_sessions.sessions(conn, 1000)),
    "web_sessions.end": Call(lambda conn: web_sessions.end(conn, 1, None)),
}
