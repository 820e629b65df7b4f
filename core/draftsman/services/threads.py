"""reply -> question: what a conversation in chat is about. It decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draftsman.domain.actor import Actor
from draftsman.domain.question import Question
from draftsman.domain.text import capped
from draftsman.store import questions
from draftsman.store import threads as store
from draftsman.store.db import Connection, Database
from draftsman.store.threads import Copy as Copy  # of `trello`, likewise
from draftsman.store.threads import Posted as Posted
from draftsman.store.threads import Topic as Topic  # of `slack`, for those who route replies

TEXT_LIMIT = 2000
"""Characters of an edited reply that the trail keeps."""


class Threads:
    """Finds what a reply answers, and notes what became of one that counted."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def slack(self, channel: str, thread: str) -> list[Topic]:
        """Return the jobs that a Slack thread is about, the newest first."""
        async with self._db.connection() as conn:
            return await store.slack(conn, channel, thread)

    async def on_its_way(self, targets: Sequence[str], thread: str) -> bool:
        """Return whether a Slack thread may hang under a message that is just being posted.

        To one of these targets, and where exactly nobody has written down: ask again later.
        """
        async with self._db.connection() as conn:
            return await store.on_its_way(conn, targets, thread)

    async def trello(self, card: str) -> list[Copy]:
        """Return the jobs that a card hears of, with the questions asked there, newest first."""
        async with self._db.connection() as conn:
            return await store.trello(conn, card)

    async def trello_own(self, ref: str) -> bool:
        """Return whether a comment, by its reference, is one of ours."""
        async with self._db.connection() as conn:
            return await store.trello_own(conn, ref)

    async def asked_in(self, channel: str, seconds: float) -> list[Question]:
        """Return what was asked in a Slack channel less than so long ago, and is open."""
        async with self._db.connection() as conn:
            found = await store.asked_in(conn, channel, seconds)
            asked = [await questions.get(conn, *name) for name in found]
        return [question for question in asked if question is not None]

    async def waiting(self) -> list[Posted]:
        """Return the messages in Slack of open questions, those of the newest jobs first."""
        async with self._db.connection() as conn:
            return await store.waiting(conn)

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
        kept = capped(detail)

        async def work(conn: Connection) -> bool:
            if await questions.lock(conn, job, question) is None:
                return False
            return await store.remark(conn, job, question, event, kind, actor.name, kept)

        return await self._db.arrow(work)
