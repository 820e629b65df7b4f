"""References, threads and metadata of messages in Slack. Pure."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, Self

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.errors import Failure
from draftsman_bots import json_fields
from draftsman_bots.slack import ids
from draftsman_bots.slack.transport.api_errors import TARGET, THREAD, SlackRefusal
from draftsman_bots.slack.transport.web_api import Data, WebApi

METADATA_EVENT: Final = "draftsman_delivery"
"""`event_type` of the metadata of every message; other apps can read it."""
_REF: Final = re.compile(r"([A-Z][A-Z0-9]{0,30})/([0-9]+\.[0-9]+)(?:/([0-9]+\.[0-9]+))?")
_TAG: Final = 13
"""Characters of the marker in a file's title, enough to distinguish the files of a job."""


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A posted message; `thread` is set for a status card that is in a thread."""

    channel: str
    ts: str
    thread: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """Parse `C012/1700000000.000100`; None if it is invalid."""
        match = _REF.fullmatch(text or "")
        return cls(match[1], match[2], match[3]) if match else None

    @property
    def thread_root(self) -> str:
        """The ts of the thread for further messages about it."""
        return self.thread or self.ts

    @property
    def text(self) -> str:
        """The reference in a Receipt."""
        return ids.message_ref(self.channel, self.ts) + (f"/{self.thread}" if self.thread else "")


def thread_of(message: Message) -> str | None:
    """Return the thread of a message: the target's own, or that of the job's card."""
    root = MessageRef.parse(message.root)
    return message.thread or (root.thread_root if root is not None else None)


def metadata(message: Message) -> dict[str, Any]:
    """Return the metadata by which a message is found."""
    return {"event_type": METADATA_EVENT, "event_payload": {"delivery_id": message.marker}}


def file_title(message: Message, name: str) -> str:
    """Return the title by which a file is found, as files have no metadata."""
    return f"{name} · {message.marker[:_TAG]}"


def matches(message: Message, entry: Any) -> bool:
    """Return whether this entry of a history is that message."""
    if not isinstance(entry, dict):
        return False
    if message.kind is not DeliveryKind.FILE:
        event_metadata = entry.get("metadata")
        if (
            not isinstance(event_metadata, dict)
            or event_metadata.get("event_type") != METADATA_EVENT
        ):
            return False
        payload = event_metadata.get("event_payload")
        return isinstance(payload, dict) and payload.get("delivery_id") == message.marker
    tag = f" · {message.marker[:_TAG]}"
    files = entry.get("files")
    return isinstance(files, list) and any(
        isinstance(file, dict) and str(file.get("title", "")).endswith(tag) for file in files
    )


def resolve_target(message: Message) -> Message:
    """Return the message with the bare user id as its target."""
    return replace(message, target=ids.account_user_id(message.target))


def is_person(target: str) -> bool:
    """Return whether a target is a user id: a direct conversation with the bot."""
    return target.startswith(("U", "W"))


def is_direct(target: str) -> bool:
    """Return whether it has a single reader."""
    return is_person(target) or target.startswith("D")


# Search for a message that may be posted, by its marker: in the thread, then in the channel.


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
    ts = str(posted["ts"])
    thread = posted.get("thread_ts")
    card = message.kind is DeliveryKind.STATUS and message.thread is None
    return MessageRef(channel, ts, str(thread) if card and thread and thread != ts else None)
