"""Search for a message that may be posted, by its marker: in the thread, then in the channel."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, Final

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.errors import Failure
from draftsman_bots import json_fields
from draftsman_bots.slack.deliveries.message_ref import MessageRef, is_person, matches, thread_of
from draftsman_bots.slack.transport.api_errors import TARGET, THREAD, SlackRefusal
from draftsman_bots.slack.transport.web_api import Data, WebApi

CLOCK_SKEW: Final = timedelta(minutes=5)
"""Largest difference between the clocks of the database and of Slack."""
_log = logging.getLogger(__name__)


async def search(web_api: WebApi, message: Message) -> MessageRef | Failure | None:
    """Return the reference of the message; None if it is absent or the bot may not search."""
    channel = await _channel(web_api, message.target)
    if not isinstance(channel, str):
        return channel
    oldest = f"{(message.created_at - CLOCK_SKEW).timestamp():.6f}"
    params = {"channel": channel, "oldest": oldest, "include_all_metadata": "true"}
    searches: list[tuple[str, dict[str, Any]]] = [("conversations.history", params)]
    if (thread := thread_of(message)) is not None:
        searches.insert(0, ("conversations.replies", {**params, "ts": thread}))
    for method, args in searches:
        async for page in web_api.pages(method, **args):
            if isinstance(page, Failure):
                if _ends_search(page):
                    break
                return page
            if (ref := _find_in_page(channel, page, message)) is not None:
                return ref
    return None


def _ends_search(failure: Failure) -> bool:
    """Return whether the search ends without a result, because of the scope or the target."""
    if failure.code == "missing_scope":
        _log.warning("cannot search for a message that may be posted; posting again: %s", failure)
    error = failure.error if isinstance(failure, SlackRefusal) else None
    return failure.code == "missing_scope" or error in THREAD or error in TARGET


async def _channel(web_api: WebApi, target: str) -> str | Failure | None:
    """Return the id of the channel, for a person that of the conversation."""
    if not is_person(target):
        return target
    call = web_api.web.conversations_open(users=target)
    response = await web_api.read("conversations.open", call)
    if isinstance(response, Failure):
        return None if _ends_search(response) else response
    return json_fields.string(json_fields.nested(response, "channel"), "id") or None


def _find_in_page(channel: str, page: Data, message: Message) -> MessageRef | None:
    messages = page.get("messages")
    for entry in messages if isinstance(messages, list) else []:
        if matches(message, entry) and isinstance(entry.get("ts"), str):
            return posted_ref(message, channel, entry)
    return None


def posted_ref(message: Message, channel: str, posted: Data) -> MessageRef:
    """Return the reference of a posted message."""
    ts, thread = str(posted["ts"]), posted.get("thread_ts")
    card = message.kind is DeliveryKind.STATUS and message.thread is None
    return MessageRef(channel, ts, str(thread) if card and thread and thread != ts else None)
