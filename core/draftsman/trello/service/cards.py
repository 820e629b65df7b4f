"""Checklists of questions, and due dates, on cards of Trello."""

from __future__ import annotations

from draftsman.database.database import Database
from draftsman.trello.cards import CardChecklist, CardDueDate, ExpiringQuestion
from draftsman.trello.store import cards as store


class TrelloCards:
    """Checklists and due dates of cards, stored so that any process can continue a change."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def checklist(self, card: str, job: int, question: int) -> CardChecklist | None:
        """Return the checklist of a question on a card."""
        async with self._db.connection() as conn:
            return await store.checklist(conn, card, job, question)

    async def find_checklist(self, checklist: str) -> CardChecklist | None:
        """Return a checklist of a question by its id in Trello."""
        async with self._db.connection() as conn:
            return await store.find_checklist(conn, checklist)

    async def save_checklist(self, checklist: CardChecklist) -> bool:
        """Store a checklist; False where the question has one on this card."""
        async with self._db.connection() as conn:
            return await store.save_checklist(conn, checklist)

    async def close_checklist(self, card: str, job: int, question: int) -> bool:
        """Record that a checklist takes no more answers; False where it was closed."""
        async with self._db.connection() as conn:
            return await store.close_checklist(conn, card, job, question)

    async def expiring(self, card: str) -> list[ExpiringQuestion]:
        """Return the open questions of a card that expire, the first to expire first."""
        async with self._db.connection() as conn:
            return await store.expiring(conn, card)

    async def due_date(self, card: str) -> CardDueDate | None:
        """Return the due date that draftsman shows on a card."""
        async with self._db.connection() as conn:
            return await store.due_date(conn, card)

    async def stale_due_dates(self, board: str, limit: int = 20) -> list[str]:
        """Return the cards of a board whose due date is not the expiry of their questions."""
        async with self._db.connection() as conn:
            return await store.stale_due_dates(conn, board, limit)

    async def change_due_date(self, old: CardDueDate | None, new: CardDueDate) -> bool:
        """Store a due date; False where another process changed it since `old` was read."""
        async with self._db.connection() as conn:
            if old is None:
                return await store.add_due_date(conn, new)
            return await store.change_due_date(conn, old, new)

    async def remove_due_date(self, old: CardDueDate) -> bool:
        """Forget a due date; False where another process changed it since `old` was read."""
        async with self._db.connection() as conn:
            return await store.remove_due_date(conn, old)
