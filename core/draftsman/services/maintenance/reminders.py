"""open question -> reminder: at half and at 90 % of its time, and not in the night."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.domain.people.policy import Policy
from draftsman.domain.people.quiet_hours import QuietHours, next_allowed
from draftsman.domain.question import QuestionKind
from draftsman.store import reminders as store
from draftsman.store.postgres.database import Connection, Database
from draftsman.store.sweeps import LeaderTerm


class Reminders:
    """Writes reminders to the outbox; the database counts them, three at most for a question."""

    def __init__(self, db: Database, policy: Policy, quiet: QuietHours | None, limit: int) -> None:
        self._db = db
        self._policy = policy
        self._quiet: Final = quiet
        """The quiet hours of questions that nobody whom we know may answer."""
        self._limit = limit

    async def remind(self, term: LeaderTerm) -> int:
        """Remind people of what is due, or put it off to the end of their quiet hours.

        Return how many were due and are no more.
        """

        async def work(conn: Connection) -> int:
            due = await store.due(conn, term, self._limit)
            return await store.remind(conn, term, [(one, self._later(one)) for one in due])

        return await self._db.run_transaction(work)

    def _later(self, due: store.DueReminder) -> datetime | None:
        """Return when the first of those who may answer wakes; None when one is awake."""
        gate = due.kind is QuestionKind.APPROVAL
        people = self._policy.answering(due.approvers, due.invoker, gate=gate)
        hours = {person.quiet for person in people} or {self._quiet}
        when = next_allowed(due.now, hours)
        return when if when > due.now else None
