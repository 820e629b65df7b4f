"""Pending decisions."""

from __future__ import annotations

from typing import Any, Final

from draftsman.jobs.job import Source
from draftsman.jobs.pending_decisions import store as pending_decisions
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from tests.soak.calls.call import NEWEST, Call
from tests.soak.history import WORKER

ANNA = Actor(Source.CLI, "anna", "Anna")
CANCEL: Final[dict[str, Any]] = {"force": False, "reason": None}
CALLS: Final[dict[str, Call]] = {
    "pending_decisions.hold": Call(
        lambda conn: pending_decisions.hold(conn, NEWEST, None, ANNA, "new", CANCEL, None, 5.0)
    ),
    "pending_decisions.of_question": Call(
        lambda conn: pending_decisions.of_question(conn, NEWEST, 1, "anna")
    ),
    "pending_decisions.of_jobs": Call(
        lambda conn: pending_decisions.of_jobs(conn, [NEWEST, NEWEST - 1])
    ),
    "pending_decisions.newest_of": Call(
        lambda conn: pending_decisions.newest_of(conn, "anna", NEWEST)
    ),
    "pending_decisions.has_leader": Call(lambda conn: pending_decisions.has_leader(conn)),
    "pending_decisions.take": Call(lambda conn: pending_decisions.take(conn, 1, early=True)),
    "pending_decisions.finish": Call(lambda conn: pending_decisions.finish(conn, 1)),
    "pending_decisions.undo": Call(lambda conn: pending_decisions.undo(conn, 1)),
    "pending_decisions.due": Call(
        lambda conn: pending_decisions.due(conn, LeaderTerm(WORKER, 1), 200)
    ),
}
