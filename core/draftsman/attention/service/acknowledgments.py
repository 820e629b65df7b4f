"""Acknowledgments, snoozes and delegations of questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from draftsman.attention import store
from draftsman.attention.attention import (
    MAX_DELAY,
    QuestionAttention,
    ReminderDelay,
)
from draftsman.channels.accounts import direct_target
from draftsman.database.database import Connection, Database
from draftsman.deliveries.target import Target
from draftsman.errors import QuestionClosed, Refused, UsageError
from draftsman.formats.times import format_time
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.people.policy import Person, Policy
from draftsman.people.spans import spans_text
from draftsman.questions.answer import LockedQuestion, closed_reason
from draftsman.questions.question import QuestionStatus
from draftsman.questions.rights import check_response
from draftsman.questions.service.questions import Questions


class Acknowledgments:
    """People tell that they work on an answer, or want no reminders of a question."""

    def __init__(self, db: Database, policy: Policy, questions: Questions) -> None:
        self._db = db
        self._policy = policy
        self._questions = questions

    async def acknowledge(
        self, job: int, ordinal: int, actor: Actor, seconds: float
    ) -> ReminderDelay:
        """Tell others that the actor works on the answer; all reminders wait until then.

        A second acknowledgment of the same person replaces the first. Raises NotFound,
        NotPermitted, QuestionClosed, UsageError, and Refused while another person works on it.
        """
        actor = self._policy.resolve(actor)
        held = await self._db.run_transaction(
            lambda conn: self.hold(conn, job, ordinal, actor, seconds)
        )
        if held.person != actor.voter:
            raise Refused(f"{held.person} works on it until {format_time(held.expires_at)}")
        return held

    async def hold(
        self, conn: Connection, job: int, ordinal: int, actor: Actor, seconds: float
    ) -> ReminderDelay:
        """Acknowledge a question in a transaction, by a resolved actor, if no other person did.

        Return the acknowledgment that holds. Raises as `acknowledge` does, except Refused.
        """
        await self._check(conn, job, ordinal, actor, seconds)
        return await store.acknowledge(conn, job, ordinal, actor, seconds)

    async def snooze(self, job: int, ordinal: int, actor: Actor, seconds: float) -> datetime:
        """Pause the reminders that the actor alone gets; return until when.

        Raises as `acknowledge` does.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> datetime:
            await self._check(conn, job, ordinal, actor, seconds)
            return await store.snooze(conn, job, ordinal, actor, seconds)

        return await self._db.run_transaction(work)

    async def delegate(
        self, job: int, ordinal: int, actor: Actor, person: str, seconds: float
    ) -> datetime:
        """Ask another person to answer; return until when the ladder and the reminders wait.

        The person is notified, outside of quiet hours, and the targets of the job get a notice. A
        second delegation replaces the first. Raises as `acknowledge` does, NotPermitted also if
        the person may not answer, and UsageError for an unknown person.
        """
        actor = self._policy.resolve(actor)
        if person not in self._policy.people:
            names = ", ".join(sorted(self._policy.people)) or "none are configured"
            raise UsageError(f"unknown person {person!r}; people: {names}")
        if person == actor.person:
            raise UsageError(f"a question cannot be delegated to yourself, {person}")

        async def work(conn: Connection) -> datetime:
            locked = await self._check(conn, job, ordinal, actor, seconds)
            delegate = self._policy.people[person]
            self._check_delegate(locked, delegate)
            direct = direct_target(delegate.ids)
            target = None if direct is None else Target(*direct)
            return await store.delegate(
                conn, job, ordinal, actor=actor, seconds=seconds, delegate=person, target=target
            )

        return await self._db.run_transaction(work)

    def _check_delegate(self, locked: LockedQuestion, person: Person) -> None:
        """Raise NotPermitted if a person may not answer a question."""
        actor = Actor(Source.INTERNAL, person.name, person.name, person.name, person.roles)
        check_response(self._policy, actor, locked.question, invoker=locked.invoker)

    async def attention(self, jobs: Sequence[int]) -> dict[tuple[int, int], QuestionAttention]:
        """Return the notifications and delays of the open questions of jobs, by job and ordinal."""
        if not jobs:
            return {}
        async with self._db.transaction() as conn:
            return await store.attention(conn, jobs)

    async def delays(self, job: int, ordinal: int) -> list[ReminderDelay]:
        """Return the acknowledgment and the snoozes of a question that hold."""
        async with self._db.connection() as conn:
            return await store.delays(conn, job, ordinal)

    async def _check(
        self, conn: Connection, job: int, ordinal: int, actor: Actor, seconds: float
    ) -> LockedQuestion:
        if not 0 < seconds <= MAX_DELAY:
            raise UsageError("the time is out of range; allowed: more than 0 s, at most 1 day")
        locked = await self._questions.lock(conn, job, ordinal)
        question = locked.question
        if question.status is not QuestionStatus.OPEN:
            raise QuestionClosed(spans_text(closed_reason(locked)))
        check_response(self._policy, actor, question, invoker=locked.invoker)
        return locked
