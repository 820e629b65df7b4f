"""Reminders of open questions after 50 % and 90 % of their time, outside quiet hours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from draftsman.attention import store
from draftsman.attention.attention import PingAudience, PingRecipient, plan_ping
from draftsman.database.database import Connection, Database
from draftsman.database.isolation import Isolation
from draftsman.database.selection import Selection
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import DueTime, DueTurn, Sweep, repeat
from draftsman.people.hours import InterruptibleHours, QuietHours
from draftsman.people.policy import Policy
from draftsman.questions.question import QuestionKind


class Reminders:
    """Writes reminders to the outbox; the database limits them to three for each question."""

    def __init__(
        self, *, db: Database, policy: Policy, quiet: QuietHours | None, limit: int
    ) -> None:
        """`quiet` are the quiet hours of questions without known respondents."""
        self._policy = policy
        self._quiet = quiet
        self._limit = limit
        self._isolation = Isolation(db, "remind")

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of reminders."""
        return [
            Sweep(
                name="remind",
                description="sends reminders at 50 % and 90 % of the time of a question",
                run=partial(repeat, self.remind, self._limit),
                isolations=(self._isolation,),
                due=DueTime(DueTurn.QUESTIONS, store.REMIND_DUE),
            )
        ]

    async def remind(self, term: LeaderTerm) -> int:
        """Send due reminders, or postpone them to the end of the recipients' quiet hours.

        Return how many were due and are no longer.
        """

        async def work(conn: Connection, selection: Selection) -> int:
            due = await store.due_reminders(conn, term, self._limit, selection)
            plans = [
                (reminder, plan_ping(reminder.now, self._audience(reminder))) for reminder in due
            ]
            silent = [thread_key for _, plan in plans for thread_key in plan.silent]
            reminders = [(reminder, plan.later) for reminder, plan in plans]
            return await store.remind(conn, term, reminders, silent)

        async def candidates(conn: Connection, selection: Selection) -> list[int]:
            due = await store.due_reminders(conn, term, self._limit, selection)
            return sorted({reminder.job for reminder in due})

        return await self._isolation.run(work, candidates)

    def _audience(self, due: store.DueReminder) -> PingAudience:
        """Return the people whom a reminder may reach."""
        approval = due.kind is QuestionKind.APPROVAL
        people = self._policy.eligible_people(
            due.approvers, due.invoker, approval=approval, repo=due.repo
        )
        direct = {
            thread_key: PingRecipient(name, self._quiet_of(name))
            for thread_key, name in zip(due.direct, due.owners, strict=True)
        }
        return PingAudience(
            [PingRecipient(person.name, person.quiet) for person in people],
            direct,
            due.shared,
            dict(zip(due.snoozed, due.snoozed_until, strict=True)),
            due.acknowledged_until,
            due.approved_by,
            self._quiet,
        )

    def _quiet_of(self, name: str) -> InterruptibleHours | None:
        person = self._policy.people.get(name)
        return self._quiet if person is None else person.quiet
