"""Messages of people to jobs."""

from __future__ import annotations

from typing import Final

from draftsman.jobs.control import store as control
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from tests.soak.calls.call import MIDDLE, MISSING, NEWEST, RUNNING, Call

RUN = RUNNING[0]
ANNA = Actor(Source.CLI, "anna", "Anna")
CALLS: Final[dict[str, Call]] = {
    "control.send_message": Call(
        lambda conn: control.send_message(conn, NEWEST, ANNA, "new", "a text")
    ),
    "control.send_message: to a finished job": Call(
        lambda conn: control.send_message(conn, MIDDLE, ANNA, "new", "a text")
    ),
    "control.message_of_event": Call(
        lambda conn: control.message_of_event(conn, NEWEST, ANNA, "new", "a text")
    ),
    "control.messages_of_job": Call(lambda conn: control.messages_of_job(conn, MIDDLE)),
    "control.messages_of_job: none": Call(lambda conn: control.messages_of_job(conn, MISSING)),
    "control.hand_messages": Call(lambda conn: control.hand_messages(conn, RUN, [1, 2])),
    "control.deliver_messages": Call(lambda conn: control.deliver_messages(conn, RUN, [1, 2])),
    "control.inherit_messages": Call(lambda conn: control.inherit_messages(conn, MIDDLE, NEWEST)),
}
