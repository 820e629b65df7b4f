"""Paged reads of a board's cards, actions and labels.

A page has at most 1000 items and is bounded by a time; Trello compares the times of ids in whole
seconds. So pages overlap by a second, and duplicates are dropped. If 1000 cards were created in the
same second, the cards are read list by list.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from draftsman_bots.trello import ids
from draftsman_bots.trello.actions import LISTED_TYPES, Action, parse_action
from draftsman_bots.trello.transport.cards import CARD_FIELDS, parse_card

if TYPE_CHECKING:
    from trello import Card, Label

    from draftsman_bots.trello.transport.client import Trello

PAGE_SIZE: Final = 1000
MAX_PAGES: Final = 100
"""Maximum pages per read."""
OVERLAP: Final = timedelta(seconds=60)
"""Time before the last read that is read again: Trello may list actions late."""
MOMENT: Final = timedelta(milliseconds=1)
"""Step back within a second that fills a page: dates have milliseconds."""


async def cards(trello: Trello, board: str) -> dict[str, Card]:
    """Return the visible cards of a board by id; raises Failure."""
    cards: dict[str, Card] = {}
    if await _add_cards(trello, f"/boards/{board}/cards", cards, "visible"):
        return cards
    for trello_list in await trello.read(trello.board(board).open_lists):
        await _add_cards(trello, f"/lists/{trello_list.id}/cards", cards, "open")
    return cards


async def actions(trello: Trello, board: str, since: datetime) -> list[Action]:
    """Return the actions of a board since a time, oldest first; raises Failure."""
    actions: dict[str, Action] = {}
    before: str | None = None
    step = ids.SECOND
    for _ in range(MAX_PAGES):
        fetch = trello.board(board).fetch_actions
        first = ids.format_time(since)
        page = _objects_with_id(await trello.read(fetch, LISTED_TYPES, PAGE_SIZE, before, first))
        parsed = [action for action in map(parse_action, page) if action is not None]
        new = {action.id: action for action in parsed if action.id not in actions}
        actions |= new
        dates = [action.date for action in parsed if action.date is not None]
        if len(page) < PAGE_SIZE or not dates or not (new or step > MOMENT):
            break
        step = ids.SECOND if len(new) > PAGE_SIZE // 2 else MOMENT
        before = ids.format_time(min(dates) + step)
    return sorted(
        actions.values(), key=lambda action: (action.date is None, action.date, action.id)
    )


async def last_activity(trello: Trello, board: str) -> datetime | None:
    """Return the time of the last action of a board; raises Failure."""
    page = _objects_with_id(await trello.read(trello.board(board).fetch_actions, "all", 1))
    return ids.parse_time(page[0].get("date")) if page else None


async def label_ids(trello: Trello, board: str) -> set[str]:
    """Return the ids of a board's labels; raises Failure."""
    return {label.id for label in await labels(trello, board)}


async def labels(trello: Trello, board: str) -> list[Label]:
    """Return the labels of a board; raises Failure."""
    return list(await trello.read(trello.board(board).get_labels, limit=PAGE_SIZE))


def _objects_with_id(page: Any) -> list[dict[str, Any]]:
    """Return the objects of a page that have an id."""
    if not isinstance(page, list):
        return []
    return [entry for entry in page if isinstance(entry, dict) and ids.is_id(entry.get("id"))]


async def _add_cards(trello: Trello, path: str, cards: dict[str, Card], state: str) -> bool:
    """Add all cards; return False if a page is full of cards of the same second."""
    before: str | None = None
    for _ in range(MAX_PAGES):
        query = {"fields": CARD_FIELDS, "filter": state, "limit": PAGE_SIZE, "before": before}
        page = _objects_with_id(await trello.get(path, **query))
        new = {
            data["id"]: parse_card(trello, data["id"], data)
            for data in page
            if data["id"] not in cards
        }
        cards |= new
        if len(page) < PAGE_SIZE:
            return True
        if not new:
            return False
        before = ids.just_after(min(new, key=lambda id: id[:8]))
    return True
