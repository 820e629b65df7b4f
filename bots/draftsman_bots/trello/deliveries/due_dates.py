"""Due dates of cards that show when the first open question expires.

The date to write is stored before it is written, so that a process that was killed in between is
no reason to take its own date for that of a person. A date of a person is never overwritten.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from draftsman.errors import Failure
from draftsman_bots.trello.ids import parse_time
from draftsman_bots.trello.records.cards import CardDueDate

if TYPE_CHECKING:
    from draftsman_bots.trello.records.board import BoardConfig
    from draftsman_bots.trello.records.service import TrelloCards
    from draftsman_bots.trello.transport.client import Trello

GONE: Final = (404, 410)
ATTEMPTS: Final = 3
"""Attempts while other processes change the due date; the next poll continues."""


async def show_expiry(trello: Trello, cards: TrelloCards, board: BoardConfig, card: str) -> None:
    """Show the first expiry of a card's questions as its due date, or put back the earlier date.

    Raises Failure.
    """
    for _ in range(ATTEMPTS):
        if await _show(trello, cards, board, card):
            return


async def _show(trello: Trello, cards: TrelloCards, board: BoardConfig, card: str) -> bool:
    """Bring the due date up to date; return False if another process changed it meanwhile."""
    old = await cards.due_date(card)
    expiring = await cards.expiring(card) if board.due_dates else []
    wanted = expiring[0].due if expiring else None
    if old is None and wanted is None:
        return True
    try:
        current = await read_due(trello, card)
        if wanted is None:
            return old is None or await _put_back(trello, cards, old, current)
        new = CardDueDate(
            card=card, board=board.board_id, earlier=current, shown=wanted, replaced=current
        )
        return await _write(trello, cards, old, new, current)
    except Failure as error:
        if error.http_status not in GONE:
            raise
        return old is None or await cards.remove_due_date(old)


async def read_due(trello: Trello, card: str) -> datetime | None:
    """Return the due date of a card; raises Failure."""
    fields = await trello.get(f"/cards/{card}", fields="due")
    return parse_time(fields.get("due")) if isinstance(fields, dict) else None


async def _write(
    trello: Trello,
    cards: TrelloCards,
    old: CardDueDate | None,
    new: CardDueDate,
    current: datetime | None,
) -> bool:
    """Write the date of `new`, and record it before and after."""
    wanted = new.shown
    if old is not None and not old.is_ours(current):
        overridden = replace(old, shown=wanted, replaced=wanted, changed=True)
        return overridden == old or await cards.change_due_date(old, overridden)
    if old is not None:
        new = replace(old, shown=wanted, replaced=current)
    if new != old and not await cards.change_due_date(old, new):
        return False
    if current != wanted:
        await trello.write(trello.card(new.card).set_due, wanted)
    written = replace(new, replaced=wanted)
    return written == new or await cards.change_due_date(new, written)


async def _put_back(
    trello: Trello, cards: TrelloCards, old: CardDueDate, current: datetime | None
) -> bool:
    """Put back the date from before the question, unless a person changed it meanwhile."""
    if old.is_ours(current) and not old.changed and current != old.earlier:
        if old.earlier is None:
            await trello.write(trello.card(old.card).remove_due)
        else:
            await trello.write(trello.card(old.card).set_due, old.earlier)
    return await cards.remove_due_date(old)
