"""Sentences of the database about people and their sessions."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "undeclared_channel": "{person} has an account in {channel}, which no package declares here;"
    " run: draftsman migrate",
    "offer_code": "{role} cannot offer a code to {account}",
    "link": "{role} cannot link to {person}",
    "unlink": "{role} cannot unlink {account}",
    "bind": "{role} cannot bind {channel}:{account}",
    "create_sign_in_link": "{role} cannot create a link for {person}",
    "link_time": "a link is valid for more than 0 s and at most an hour",
    "session_time": "a session lasts more than 0 s and at most 90 days",
    "link_needed": "a session of the method link needs a link",
    "unknown_person": "there is no person {person}",
    "end_browser_sessions": "{role} cannot end sessions",
    "page_server": "{role} cannot use sessions of browsers",
}
