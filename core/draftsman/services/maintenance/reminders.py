"""Reminders of open questions after 50 % and 90 % of their time, outside quiet hours."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.domain.people.policy import Policy
from draftsman.domain.people.quiet_hours import QuietHours, next_allowed
from draftsman.domain.question import QuestionKind
from draftsman.domain.run import LeaderTerm
from draftsman.store.outbox import reminders as store
from draftsman.store.postgres.database import Connection, Database


class Reminders:
    """Writes reminders to the outbox; the database limits them to three for each question."""

    def __init__(self, db: Database, policy: Policy, quiet: QuietHours | None, limit: int) -> None:
        self._db = db
        self._policy = policy
        self._quiet: Final = quiet
        """Quiet hours of questions without known respondents."""
        self._limit = limit

    async def remind(self, term: LeaderTerm) -> int:
        """Send due reminders, or postpone them to the end of the recipients' quiet hours.

        Return how many were due and are no longer.
        """

        async def work(conn: Connection) -> int:
            due = await store.due(conn, term, self._limit)
            return await store.remind(
                conn, term, [(reminder, self._postponed_to(reminder)) for reminder in due]
            )

        return await self._db.run_transaction(work)

    def _postponed_to(self, due: store.DueReminder) -> datetime | None:
        """Return when the first respondent's quiet hours end; None when they are over."""
        approval = due.kind is QuestionKind.APPROVAL
        hours = self._policy.quiet_hours_of(
            due.approvers, due.invoker, self._quiet, approval=approval
        )
        allowed_at = next_allowed(due.now, hours)
        return allowed_at if allowed_at > due.now else None
