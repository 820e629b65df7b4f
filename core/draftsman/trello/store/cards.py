"""Checklists and due dates of cards."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from psycopg.types.json import Jsonb

from draftsman.database.database import Connection, execute, fetch_all, fetch_one, rows
from draftsman.database.named_queries import load
from draftsman.trello.cards import CardChecklist, CardDueDate, ExpiringQuestion

_Q = load("trello_cards")
MAX_JOBS: Final = 100
"""Jobs of a card whose questions are read."""


async def checklist(conn: Connection, card: str, job: int, question: int) -> CardChecklist | None:
    """Return the checklist of a question on a card."""
    params = {"card": card, "job": job, "question": question}
    return await fetch_one(conn, _Q["checklist"], params, CardChecklist)


async def find_checklist(conn: Connection, checklist: str) -> CardChecklist | None:
    """Return a checklist of a question by its id in Trello."""
    return await fetch_one(conn, _Q["find_checklist"], {"checklist": checklist}, CardChecklist)


async def save_checklist(conn: Connection, checklist: CardChecklist) -> bool:
    """Insert a checklist; False where the question has one on this card."""
    params = asdict(checklist) | {"items": Jsonb(checklist.items)}
    return await execute(conn, _Q["save_checklist"], params) > 0


async def close_checklist(conn: Connection, card: str, job: int, question: int) -> bool:
    """Record that a checklist takes no more answers; False where it was closed."""
    params = {"card": card, "job": job, "question": question}
    return await execute(conn, _Q["close_checklist"], params) > 0


async def expiring(conn: Connection, card: str) -> list[ExpiringQuestion]:
    """Return the open questions of a card that expire, the first to expire first."""
    params = {"card": card, "limit": MAX_JOBS}
    return await fetch_all(conn, _Q["expiring"], params, ExpiringQuestion)


async def due_date(conn: Connection, card: str) -> CardDueDate | None:
    """Return the due date that draftsman shows on a card."""
    return await fetch_one(conn, _Q["due_date"], {"card": card}, CardDueDate)


async def stale_due_dates(conn: Connection, board: str, limit: int = 20) -> list[str]:
    """Return the cards of a board whose due date is not the expiry of their questions."""
    params = {"board": board, "limit": limit}
    return [row[0] for row in await rows(conn, _Q["stale_due_dates"], params)]


async def add_due_date(conn: Connection, new: CardDueDate) -> bool:
    """Insert a due date; False where another process inserted it since it was read."""
    return await execute(conn, _Q["add_due_date"], asdict(new)) > 0


async def change_due_date(conn: Connection, old: CardDueDate, new: CardDueDate) -> bool:
    """Update a due date; False where another process changed it since it was read."""
    params = asdict(new) | {
        "old_shown": old.shown,
        "old_replaced": old.replaced,
        "old_changed": old.changed,
    }
    return await execute(conn, _Q["change_due_date"], params) > 0


async def remove_due_date(conn: Connection, old: CardDueDate) -> bool:
    """Forget a due date; False where another process changed it since `old` was read."""
    return await execute(conn, _Q["remove_due_date"], asdict(old)) > 0
