"""Search for a delivered message on a card by its marker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman_bots.trello.deliveries.message_ref import file_matches, matches
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.transport.client import Trello

CLOCK_SKEW: Final = timedelta(minutes=5)
"""Maximum difference between the clocks of the database and Trello."""
PAGE_SIZE: Final = 1000
"""Actions per page, Trello's maximum."""
MAX_PAGES: Final = 20


async def search(trello: Trello, message: Message) -> str | None:
    """Return the reference of a delivered message, or None. Raises Failure."""
    card = trello.card(message.target)
    if message.kind is DeliveryKind.FILE:
        attachments = await trello.read(card.fetch_attachments, force=True)
        return _find_match(attachments, message, file_matches)
    before: str | None = None
    since = (message.created_at - CLOCK_SKEW).isoformat()
    for _ in range(MAX_PAGES):
        page = await trello.read(
            card.fetch_actions, "commentCard", since=since, before=before, action_limit=PAGE_SIZE
        )
        if (reference := _find_match(page, message, matches)) is not None:
            return reference
        last = page[-1].get("date") if isinstance(page, list) and len(page) >= PAGE_SIZE else None
        if not isinstance(last, str) or last == before:
            return None
        before = last
    return None


def _find_match(page: Any, message: Message, is_match: Any) -> str | None:
    for item in page if isinstance(page, list) else []:
        if is_match(message, item) and is_id(item.get("id")):
            return str(item["id"])
    return None
