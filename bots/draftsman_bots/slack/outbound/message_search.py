"""Search for a message that may be posted, by its marker: in the thread, then in the channel."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, Final

from draftsman.domain.messages.delivery import DeliveryKind, Message
from draftsman.errors import Failure
from draftsman_bots.slack.outbound.message_ref import MessageRef, is_person, matches, thread_of
from draftsman_bots.slack.transport.api_errors import TARGET, THREAD, SlackRefusal
from draftsman_bots.slack.transport.web_api import Data, WebApi

CLOCK_SKEW: Final = timedelta(minutes=5)
"""Largest difference between the clocks of the database and of Slack."""
_log = logging.getLogger(__name__)


async def search(caller: WebApi, message: Message) -> MessageRef | Failure | None:
    """Return the reference of the message; None if it is absent or the bot may not search."""
    channel = await _channel(caller, message.target)
    if not isinstance(channel, str):
        return channel
    oldest = f"{(message.created_at - CLOCK_SKEW).timestamp():.6f}"
    since = {"channel": channel, "oldest": oldest, "include_all_metadata": "true"}
    wanted: list[tuple[str, dict[str, Any]]] = [("conversations.history", since)]
    if (thread := thread_of(message)) is not None:
        wanted.insert(0, ("conversations.replies", {**since, "ts": thread}))
    for method, args in wanted:
        async for page in caller.pages(method, **args):
            if isinstance(page, Failure):
                if _over(page):
                    break
                return page
            if (ref := _among(channel, page, message)) is not None:
                return ref
    return None


def _over(failure: Failure) -> bool:
    """Return whether the search ends without a result, because of the scope or the target."""
    if failure.code == "missing_scope":
        _log.warning("cannot search for a message that may be posted; posting again: %s", failure)
    error = failure.error if isinstance(failure, SlackRefusal) else None
    return failure.code == "missing_scope" or error in THREAD or error in TARGET


async def _channel(caller: WebApi, target: str) -> str | Failure | None:
    """Return the id of the channel, for a person that of the conversation."""
    if not is_person(target):
        return target
    call = caller.web.conversations_open(users=target)
    found = await caller.read("conversations.open", call)
    if isinstance(found, Failure):
        return None if _over(found) else found
    channel = found.get("channel")
    made = channel.get("id") if isinstance(channel, dict) else None
    return made if isinstance(made, str) else None


def _among(channel: str, page: Data, message: Message) -> MessageRef | None:
    found = page.get("messages")
    for one in found if isinstance(found, list) else []:
        if matches(message, one) and isinstance(one.get("ts"), str):
            return posted_ref(message, channel, one)
    return None


def posted_ref(message: Message, channel: str, posted: Data) -> MessageRef:
    """Return the reference of a posted message."""
    ts, thread = str(posted["ts"]), posted.get("thread_ts")
    card = message.kind is DeliveryKind.STATUS and message.thread is None
    return MessageRef(channel, ts, str(thread) if card and thread and thread != ts else None)
