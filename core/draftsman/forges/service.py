"""Events of forges, pull requests of jobs, and the jobs that follow them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.database.database import Database, on_connection
from draftsman.forges import store
from draftsman.forges.forge_event import ForgeEvent
from draftsman.worker.registry.service import NamedLease

BATCH_SIZE: Final = 200
"""Events in one statement."""


class ForgeEvents(NamedLease):
    """Events of forges, each stored once, and the `follow_ups` that they lead to."""

    lease_name = "forge"

    def __init__(self, db: Database) -> None:
        self._db = db
        self.follow_ups = FollowUps(db)

    async def receive(self, forge: str, events: Sequence[ForgeEvent]) -> int:
        """Store the events that are not known yet; return their number."""
        unique = list({(e.project, e.number, e.key): e for e in events if e.number}.values())
        new = 0
        for start in range(0, len(unique), BATCH_SIZE):
            async with self._db.connection() as conn:
                new += len(await store.receive(conn, forge, unique[start : start + BATCH_SIZE]))
        return new

    open_pulls = on_connection(store.open_pulls)
    closed_pulls = on_connection(store.closed_pulls)
    note_tip = on_connection(store.note_tip)
    unprocessed = on_connection(store.unprocessed)
    finish = on_connection(store.finish)
    asked_targets = on_connection(store.asked_targets)


class FollowUps:
    """Pull requests of jobs, and the jobs that follow them up."""

    def __init__(self, db: Database) -> None:
        self._db = db

    family = on_connection(store.family)
    jobs_of_pull = on_connection(store.jobs_of_pull)
    is_open = on_connection(store.is_open)

    unanswered = on_connection(store.unanswered)

    answered = on_connection(store.answered)

    ended_branches = on_connection(store.ended_branches)

    branch_deleted = on_connection(store.branch_deleted)
