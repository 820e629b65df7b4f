"""Acknowledgments and snoozes of questions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from draftsman.domain.attention.pings import ReminderDelay
from draftsman.domain.messages.spans import spans_text
from draftsman.domain.people.actor import Actor
from draftsman.domain.people.policy import Policy
from draftsman.domain.question import QuestionKind, QuestionStatus
from draftsman.domain.refusals import closed_reason
from draftsman.errors import QuestionClosed, Refused, UsageError
from draftsman.services.questions import Questions
from draftsman.store.attention import acknowledgments as store
from draftsman.store.postgres.database import Connection, Database

MAX_DELAY: Final = 86_400.0
"""Maximum seconds of an acknowledgment or a snooze."""


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

        async def work(conn: Connection) -> ReminderDelay:
            await self._check(conn, job, ordinal, actor, seconds)
            return await store.acknowledge(conn, job, ordinal, actor, seconds)

        held = await self._db.run_transaction(work)
        if held.person != actor.voter:
            raise Refused(f"{held.person} works on it until {held.expires_at:%Y-%m-%d %H:%M %Z}")
        return held

    async def snooze(self, job: int, ordinal: int, actor: Actor, seconds: float) -> datetime:
        """Pause the reminders that the actor alone gets; return until when.

        Raises as `acknowledge` does.
        """
        actor = self._policy.resolve(actor)

        async def work(conn: Connection) -> datetime:
            await self._check(conn, job, ordinal, actor, seconds)
            return await store.snooze(conn, job, ordinal, actor, seconds)

        return await self._db.run_transaction(work)

    async def delays(self, job: int, ordinal: int) -> list[ReminderDelay]:
        """Return the acknowledgment and the snoozes of a question that hold."""
        async with self._db.connection() as conn:
            return await store.delays(conn, job, ordinal)

    async def _check(
        self, conn: Connection, job: int, ordinal: int, actor: Actor, seconds: float
    ) -> None:
        if not 0 < seconds <= MAX_DELAY:
            raise UsageError("the time is out of range; allowed: more than 0 s, at most 1 day")
        locked = await self._questions.lock(conn, job, ordinal)
        question = locked.question
        if question.status is not QuestionStatus.OPEN:
            raise QuestionClosed(spans_text(closed_reason(question)))
        if question.kind is QuestionKind.APPROVAL:
            self._policy.check_vote(actor, question.approvers, invoker=locked.invoker)
        else:
            self._policy.check_answer(
                actor, question.approvers, invoker=locked.invoker, key=question.key
            )
