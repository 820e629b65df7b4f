"""Looks for what may be on a card already, by its marker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from draftsman.domain.messages.delivery import DeliveryKind, Message
from draftsman_bots.trello.ids import is_id
from draftsman_bots.trello.outbound.message_ref import file_matches, matches
from draftsman_bots.trello.transport.client import Trello

CLOCK_SKEW: Final = timedelta(minutes=5)
"""What the clocks of the database and of Trello may differ by."""
PAGE_SIZE: Final = 1000
"""Actions of a page, as many as Trello gives."""
MAX_PAGES: Final = 20


async def search(trello: Trello, message: Message) -> str | None:
    """Return what a message is called; None: it is not there. Raises Failure."""
    if message.kind is DeliveryKind.FILE:
        path = f"/cards/{message.target}/attachments"
        return _named(await trello.get(path, fields="name"), message, file_matches)
    before: str | None = None
    since = (message.created_at - CLOCK_SKEW).isoformat()
    for _ in range(MAX_PAGES):
        page = await trello.get(
            f"/cards/{message.target}/actions",
            filter="commentCard",
            fields=["data", "date"],
            limit=PAGE_SIZE,
            since=since,
            before=before,
        )
        if (found := _named(page, message, matches)) is not None:
            return found
        last = page[-1].get("date") if isinstance(page, list) and len(page) >= PAGE_SIZE else None
        if not isinstance(last, str) or last == before:
            return None
        before = last
    return None


def _named(page: Any, message: Message, is_that: Any) -> str | None:
    for one in page if isinstance(page, list) else []:
        if is_that(message, one) and is_id(one.get("id")):
            return str(one["id"])
    return None
