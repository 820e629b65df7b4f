"""Follow-ups on pull requests: reads, messages to finished jobs, and answers on forges."""

from __future__ import annotations

from draftsman.database.database import Database, on_connection
from draftsman.forges import store


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
