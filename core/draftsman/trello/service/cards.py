"""Checklists of questions, and due dates, on cards of Trello."""

from __future__ import annotations

from draftsman.database.database import Database, on_connection
from draftsman.trello import store
from draftsman.trello.cards import CardDueDate


class TrelloCards:
    """Checklists and due dates of cards, stored so that any process can continue a change."""

    def __init__(self, db: Database) -> None:
        self._db = db

    checklist = on_connection(store.checklist)
    find_checklist = on_connection(store.find_checklist)
    save_checklist = on_connection(store.save_checklist)
    close_checklist = on_connection(store.close_checklist)
    expiring = on_connection(store.expiring)
    due_date = on_connection(store.due_date)
    stale_due_dates = on_connection(store.stale_due_dates)

    async def change_due_date(self, old: CardDueDate | None, new: CardDueDate) -> bool:
        """Store a due date; False where another process changed it since `old` was read."""
        async with self._db.connection() as conn:
            if old is None:
                return await store.add_due_date(conn, new)
            return await store.change_due_date(conn, old, new)

    remove_due_date = on_connection(store.remove_due_date)
