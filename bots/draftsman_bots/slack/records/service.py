"""Threads of Slack: the jobs and questions that a conversation is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from draftsman.database.database import on_connection
from draftsman.questions.question import Question
from draftsman_bots.slack.records import store

if TYPE_CHECKING:
    from draftsman.runtime import Runtime


class SlackThreads:
    """Queries for the topics of threads."""

    def __init__(self, rt: Runtime) -> None:
        self._db = rt.db
        self._questions = rt.questions

    topics = on_connection(store.topics)
    question_of_message = on_connection(store.question_of_message)
    has_pending_message = on_connection(store.has_pending_message)
    question_messages = on_connection(store.question_messages)

    async def open_questions_in(self, channel: str, seconds: float) -> list[Question]:
        """Return the open questions asked in a channel within the last `seconds`."""
        async with self._db.connection() as conn:
            refs = await store.open_questions_in(conn, channel, seconds)
        return [await self._questions.get(*name) for name in refs]
