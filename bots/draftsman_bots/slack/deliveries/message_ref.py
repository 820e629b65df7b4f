"""References, threads and metadata of messages in Slack. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman_bots.slack import ids

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
