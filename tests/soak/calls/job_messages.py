"""Messages of people to jobs."""

from __future__ import annotations

from typing import Final

from draftsman.jobs.control.store import messages as job_messages
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from tests.soak.calls.call import MIDDLE, MISSING, NEWEST, RUNNING, Call

RUN = RUNNING[0]
ANNA = Actor(Source.CLI, "anna", "Anna")
CALLS: Final[dict[str, Call]] = {
    "job_messages.send": Call(lambda conn: job_messages.send(conn, NEWEST, ANNA, "new", "a text")),
    "job_messages.send: to a finished job": Call(
        lambda conn: job_messages.send(conn, MIDDLE, ANNA, "new", "a text")
    ),
    "job_messages.of_job": Call(lambda conn: job_messages.of_job(conn, MIDDLE)),
    "job_messages.of_job: none": Call(lambda conn: job_messages.of_job(conn, MISSING)),
    "job_messages.hand": Call(lambda conn: job_messages.hand(conn, RUN, [1, 2])),
    "job_messages.deliver": Call(lambda conn: job_messages.deliver(conn, RUN, [1, 2])),
    "job_messages.inherit": Call(lambda conn: job_messages.inherit(conn, MIDDLE, NEWEST)),
}
