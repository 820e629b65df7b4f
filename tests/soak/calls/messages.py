"""Messages of people to jobs."""

from __future__ import annotations

from typing import Final

from draftsman.domain.job import Source
from draftsman.domain.people.actor import Actor
from draftsman.store import messages
from tests.soak.calls.call import MIDDLE, MISSING, NEWEST, RUNNING, Call

RUN = RUNNING[0]
ANNA = Actor(Source.CLI, "anna", "Anna")
CALLS: Final[dict[str, Call]] = {
    "messages.send": Call(lambda conn: messages.send(conn, NEWEST, ANNA, "new", "a text")),
    "messages.send: to a finished job": Call(
        lambda conn: messages.send(conn, MIDDLE, ANNA, "new", "a text")
    ),
    "messages.of_job": Call(lambda conn: messages.of_job(conn, MIDDLE)),
    "messages.of_job: none": Call(lambda conn: messages.of_job(conn, MISSING)),
    "messages.hand": Call(lambda conn: messages.hand(conn, RUN, [1, 2])),
    "messages.deliver": Call(lambda conn: messages.deliver(conn, RUN, [1, 2])),
    "messages.inherit": Call(lambda conn: messages.inherit(conn, MIDDLE, NEWEST)),
}
