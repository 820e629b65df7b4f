"""reply -> question: what a conversation in chat is about. It decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftsman.domain.people.actor import Actor
from draftsman.domain.question import Question
from draftsman.domain.text import truncate_payload
from draftsman.store import questions
from draftsman.store import threads as store
from draftsman.store.postgres.database import Connection, Database
from draftsman.store.threads import CardTopic as CardTopic  # of `trello`, likewise
from draftsman.store.threads import QuestionMessage as QuestionMessage
from draftsman.store.threads import (
    ThreadTopic as ThreadTopic,  # of `slack`, for those who route replies
)

TEXT_LIMIT = 2000
"""Characters of an edited reply that the trail keeps."""


class Threads:
    """Finds what a reply answers, and notes what became of one that counted."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def slack(self, channel: str, thread: str) -> list[ThreadTopic]:
        """Return the jobs that a Slack thread is about, the newest first."""
        async with self._db.connection() as conn:
            return await store.slack(conn, channel, thread)

    async def has_pending_message(self, targets: Sequence[str], thread: str) -> bool:
        """Return whether a Slack thread may hang under a message that is just being posted.

        To one of these targets, and where exactly nobody has written down: ask again later.
        """
        async with self._db.connection() as conn:
            return await store.has_pending_message(conn, targets, thread)

    async def trello(self, card: str) -> list[CardTopic]:
        """Return the jobs that a card hears of, with the questions asked there, newest first."""
        async with self._db.connection() as conn:
            return await store.trello(conn, card)

    async def is_own_comment(self, ref: str) -> bool:
        """Return whether a comment, by its reference, is one of ours."""
        async with self._db.connection() as conn:
            return await store.is_own_comment(conn, ref)

    async def open_questions_in(self, channel: str, seconds: float) -> list[Question]:
        """Return what was asked in a Slack channel less than so long ago, and is open."""
        async with self._db.connection() as conn:
            found = await store.open_questions_in(conn, channel, seconds)
            asked = [await questions.get(conn, *name) for name in found]
        return [question for question in asked if question is not None]

    async def question_messages(self) -> list[QuestionMessage]:
        """Return the messages in Slack of open questions, those of the newest jobs first."""
        async with self._db.connection() as conn:
            return await store.question_messages(conn)

    async def edited(self, job: int, question: int, event: str, actor: Actor, text: str) -> bool:
        """Note that an accepted answer was changed afterwards, which changes no decision.

        `event` is what the answer came with. False where it was not accepted, or this was noted.
        """
        detail = {"text": text[:TEXT_LIMIT]}
        return await self._remark(job, question, event, "answer_edited", actor, detail)

    async def deleted(self, job: int, question: int, event: str, actor: Actor) -> bool:
        """Note that an accepted answer was deleted afterwards; it goes on counting."""
        return await self._remark(job, question, event, "answer_deleted", actor, {})

    async def _remark(
        self, job: int, question: int, event: str, kind: str, actor: Actor, detail: dict[str, Any]
    ) -> bool:
        kept = truncate_payload(detail)

        async def work(conn: Connection) -> bool:
            if await questions.lock(conn, job, question) is None:
                return False
            return await store.record_answer_change(
                conn, job, question, event, kind, actor.name, kept
            )

        return await self._db.run_transaction(work)
