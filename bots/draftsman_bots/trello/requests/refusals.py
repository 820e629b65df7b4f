"""Labels that start no job, and the comment that says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from draftsman.errors import UsageError
from draftsman_bots.json_fields import mapping, objects, string
from draftsman_bots.trello.deliveries import markdown
from draftsman_bots.trello.requests import card_ticket

if TYPE_CHECKING:
    from draftsman_bots.trello.context import BotContext


class LabelRefused(UsageError):
    """A label starts no job; `comment` says why, and is written once for `once`."""

    def __init__(self, message: str, comment: str, once: str) -> None:
        super().__init__(message)
        self.comment = comment
        self.once = once


async def comment_once(
    context: BotContext, card: Mapping[str, Any], comment: str, once: str
) -> None:
    """Write the comment unless that for `once` is on the card. Raises Failure.

    Of the comments of two processes at the same time, the first stays.
    """
    marker = str(uuid5(NAMESPACE_URL, f"draftsman:{once}"))
    id = string(card, "id")
    if _comments(card, marker):
        return
    trello = context.trello
    text = markdown.with_marker(comment, marker)
    written = mapping(await trello.write(trello.card(id).comment, text))
    comments = _comments(await card_ticket.fetch_card(trello, id), marker)
    comment_id = string(written, "id")
    if comment_id in comments and comment_id != comments[0]:
        await trello.write(trello.card(id).delete_comment, {"id": comment_id})


def _comments(card: Mapping[str, Any], marker: str) -> list[str]:
    """Return the ids of the comments with a marker, oldest first."""
    return [
        string(action, "id")
        for action in reversed(objects(card, "actions"))
        if markdown.marker_of(string(action.get("data"), "text")) == marker
    ]
