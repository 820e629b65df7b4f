"""Reading a board: its cards, its actions and its labels, page by page.

A page has a thousand things at most, and ends at a time; Trello takes the time of an id by whole
seconds. So each page begins a second later than the one before ended, and what comes twice counts
once. Where a thousand cards are of one second, they are read list by list.
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
"""Pages that one look reads at most."""
OVERLAP: Final = timedelta(seconds=60)
"""What is read once more of what was read: actions come late, and several in a second."""
MOMENT: Final = timedelta(milliseconds=1)
"""The step where a page is full of one second: dates have milliseconds."""
Card = dict[str, Any]


async def cards(trello: Trello, board: str) -> dict[str, Card]:
    """Return the cards of a board that people see, by their ids; raises Failure."""
    found: dict[str, Card] = {}
    if await _cards(trello, f"/boards/{board}/cards", found, "visible"):
        return found
    for one in await listed(trello, f"/boards/{board}/lists", fields="name"):
        await _cards(trello, f"/lists/{one['id']}/cards", found, "open")
    return found


async def actions(trello: Trello, board: str, since: datetime) -> list[Action]:
    """Return what happened on a board since then, the oldest first; raises Failure."""
    found: dict[str, Action] = {}
    before: str | None = None
    step = ids.SECOND
    for _ in range(MAX_PAGES):
        page = await listed(
            trello, f"/boards/{board}/actions",
            filter=LISTED_TYPES, limit=PAGE_SIZE, since=ids.format_time(since), before=before,
        )  # fmt: skip
        read = [action for action in map(parse_action, page) if action is not None]
        new = {action.id: action for action in read if action.id not in found}
        found |= new
        dates = [action.date for action in read if action.date is not None]
        if len(page) < PAGE_SIZE or not dates or not (new or step > MOMENT):
            break
        step = ids.SECOND if len(new) > PAGE_SIZE // 2 else MOMENT
        before = ids.format_time(min(dates) + step)
    return sorted(found.values(), key=lambda one: (one.date is None, one.date, one.id))


async def last_activity(trello: Trello, board: str) -> datetime | None:
    """Return when the last thing happened on a board; raises Failure."""
    page = await listed(trello, f"/boards/{board}/actions", limit=1)
    return ids.parse_time(page[0].get("date")) if page else None


async def label_ids(trello: Trello, board: str) -> set[str]:
    """Return the ids of the labels that a board has; raises Failure."""
    return {one["id"] for one in await listed(trello, f"/boards/{board}/labels", limit=PAGE_SIZE)}


async def listed(trello: Trello, path: str, **params: Any) -> list[Card]:
    """Return the things of a page that have an id; raises Failure."""
    page = await trello.get(path, **params)
    if not isinstance(page, list):
        return []
    return [one for one in page if isinstance(one, dict) and ids.is_id(one.get("id"))]


async def _cards(trello: Trello, path: str, found: dict[str, Card], wanted: str) -> bool:
    """Add all cards; return False where they cannot be told apart by time."""
    before: str | None = None
    for _ in range(MAX_PAGES):
        page = await listed(
            trello, path, fields=CARD_FIELDS, filter=wanted, limit=PAGE_SIZE, before=before
        )
        new = {one["id"]: one for one in page if one["id"] not in found}
        found |= new
        if len(page) < PAGE_SIZE:
            return True
        if not new:
            return False
        before = ids.just_after(min(new, key=lambda id: id[:8]))
    return True
