"""Paged reads of a board's cards, actions and labels.

A page has at most 1000 items and is bounded by a time; Trello compares the times of ids in whole
seconds. So pages overlap by a second, and duplicates are dropped. If 1000 cards were created in the
same second, the cards are read list by list.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from draftsman_bots.trello import ids
from draftsman_bots.trello.parsers.actions import LISTED_TYPES, Action, parse_action
from draftsman_bots.trello.usecases.label_jobs import CARD_FIELDS

if TYPE_CHECKING:
    from draftsman_bots.trello.transport.client import Trello

PAGE_SIZE: Final = 1000
MAX_PAGES: Final = 100
"""Maximum pages per read."""
OVERLAP: Final = timedelta(seconds=60)
"""Time before the last read that is read again: Trello may list actions late."""
MOMENT: Final = timedelta(milliseconds=1)
"""Step back within a second that fills a page: dates have milliseconds."""
Card = dict[str, Any]


async def cards(trello: Trello, board: str) -> dict[str, Card]:
    """Return the visible cards of a board by id; raises Failure."""
    cards: dict[str, Card] = {}
    if await _add_cards(trello, f"/boards/{board}/cards", cards, "visible"):
        return cards
    for trello_list in await listed(trello, f"/boards/{board}/lists", fields="name"):
        await _add_cards(trello, f"/lists/{trello_list['id']}/cards", cards, "open")
    return cards


async def actions(trello: Trello, board: str, since: datetime) -> list[Action]:
    """Return the actions of a board since a time, oldest first; raises Failure."""
    actions: dict[str, Action] = {}
    before: str | None = None
    step = ids.SECOND
    for _ in range(MAX_PAGES):
        page = await listed(
            trello, f"/boards/{board}/actions",
            filter=LISTED_TYPES, limit=PAGE_SIZE, since=ids.format_time(since), before=before,
        )  # fmt: skip
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
    page = await listed(trello, f"/boards/{board}/actions", limit=1)
    return ids.parse_time(page[0].get("date")) if page else None


async def label_ids(trello: Trello, board: str) -> set[str]:
    """Return the ids of a board's labels; raises Failure."""
    labels = await listed(trello, f"/boards/{board}/labels", limit=PAGE_SIZE)
    return {label["id"] for label in labels}


async def listed(trello: Trello, path: str, **params: Any) -> list[Card]:
    """Return the things of a page that have an id; raises Failure."""
    page = await trello.get(path, **params)
    if not isinstance(page, list):
        return []
    return [item for item in page if isinstance(item, dict) and ids.is_id(item.get("id"))]


async def _add_cards(trello: Trello, path: str, cards: dict[str, Card], state: str) -> bool:
    """Add all cards; return False if a page is full of cards of the same second."""
    before: str | None = None
    for _ in range(MAX_PAGES):
        page = await listed(
            trello, path, fields=CARD_FIELDS, filter=state, limit=PAGE_SIZE, before=before
        )
        new = {card["id"]: card for card in page if card["id"] not in cards}
        cards |= new
        if len(page) < PAGE_SIZE:
            return True
        if not new:
            return False
        before = ids.just_after(min(new, key=lambda id: id[:8]))
    return True
