"""Places where people answer: their jobs and questions, and edited answers."""

from __future__ import annotations

from typing import Any

from draftsman.database.database import Connection, Database, on_connection
from draftsman.deliveries.store import threads as store
from draftsman.people.actor import Actor
from draftsman.questions.store import questions
from draftsman.text import truncate_payload

TEXT_LIMIT = 2000
"""Maximum length in characters of an edited reply in its event."""


class Threads:
    """Topics of places where people answer, and events about edited or deleted answers."""

    def __init__(self, db: Database) -> None:
        self._db = db

    place = on_connection(store.place)
    is_own_message = on_connection(store.is_own_message)

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
