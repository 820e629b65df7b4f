"""Chat threads: the jobs and questions that a conversation is about, and edited answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftsman.database.database import Connection, Database
from draftsman.deliveries.store import threads as store
from draftsman.deliveries.thread import CardTopic, QuestionMessage, ThreadTopic
from draftsman.people.actor import Actor
from draftsman.questions.question import Question
from draftsman.questions.store import questions
from draftsman.text import truncate_payload

TEXT_LIMIT = 2000
"""Maximum length in characters of an edited reply in its event."""


class Threads:
    """Queries for the topics of chat threads, and events about edited or deleted answers."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def slack(self, channel: str, thread: str) -> list[ThreadTopic]:
        """Return the jobs of a Slack thread, newest first."""
        async with self._db.connection() as conn:
            return await store.slack(conn, channel, thread)

    async def question_of_message(self, channel: str, ts: str) -> tuple[int, int] | None:
        """Return job and ordinal of the question that a Slack message asks."""
        async with self._db.connection() as conn:
            return await store.question_of_message(conn, channel, ts)

    async def has_pending_message(self, targets: Sequence[str], thread: str) -> bool:
        """Return whether the thread's root may be a message whose posting is not recorded yet.

        `targets` are the conversations to look at. On True, the caller asks again later.
        """
        async with self._db.connection() as conn:
            return await store.has_pending_message(conn, targets, thread)

    async def trello(self, card: str) -> list[CardTopic]:
        """Return the jobs that post to a card, with the questions asked on it, newest first."""
        async with self._db.connection() as conn:
            return await store.trello(conn, card)

    async def forge(self, target: str) -> list[CardTopic]:
        """Return the jobs that post to an issue or pull request, as `trello`."""
        async with self._db.connection() as conn:
            return await store.forge(conn, target)

    async def is_own_comment(self, ref: str) -> bool:
        """Return whether draftsman wrote the comment with this reference."""
        async with self._db.connection() as conn:
            return await store.is_own_comment(conn, ref)

    async def open_questions_in(self, channel: str, seconds: float) -> list[Question]:
        """Return the open questions asked in a Slack channel within the last `seconds`."""
        async with self._db.connection() as conn:
            refs = await store.open_questions_in(conn, channel, seconds)
            loaded = [await questions.get(conn, *name) for name in refs]
        return [question for question in loaded if question is not None]

    async def question_messages(self) -> list[QuestionMessage]:
        """Return the Slack messages of open questions, newest jobs first."""
        async with self._db.connection() as conn:
            return await store.question_messages(conn)

    async def edited(self, job: int, question: int, event: str, actor: Actor, text: str) -> bool:
        """Record that an accepted answer was edited; the decision stays.

        `event` is the source event of the answer. Return False where the answer was not accepted,
        or the edit is already recorded.
        """
        detail = {"text": text[:TEXT_LIMIT]}
        return await self._record_change(job, question, event, "answer_edited", actor, detail)

    async def deleted(self, job: int, question: int, event: str, actor: Actor) -> bool:
        """Record that an accepted answer was deleted; the decision stays."""
        return await self._record_change(job, question, event, "answer_deleted", actor, {})

    async def _record_change(
        self, job: int, question: int, event: str, kind: str, actor: Actor, detail: dict[str, Any]
    ) -> bool:
        payload = truncate_payload(detail)

        async def work(conn: Connection) -> bool:
            if await questions.lock(conn, job, question) is None:
                return False
            return await store.record_answer_change(
                conn, job, question, event=event, kind=kind, actor=actor.name, detail=payload
            )

        return await self._db.run_transaction(work)
