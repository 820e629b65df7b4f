"""Where a message is in Slack: what a Receipt calls it, and what it belongs under. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from draftsman.domain.messages.delivery import DeliveryKind, Message
from draftsman_bots.slack import ids

METADATA_EVENT: Final = "draftsman_delivery"
"""`event_type` of the metadata that every message carries; other apps can read it."""
_REF: Final = re.compile(r"([A-Z][A-Z0-9]{0,30})/([0-9]+\.[0-9]+)(?:/([0-9]+\.[0-9]+))?")
_TAG: Final = 13
"""Characters of the marker in the title of a file: enough to tell the files of one job."""


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A posted message; `thread` is set for a status card that itself stands in a thread."""

    channel: str
    ts: str
    thread: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> Self | None:
        """Read `C012/1700000000.000100`; None for anything else."""
        match = _REF.fullmatch(text or "")
        return cls(match[1], match[2], match[3]) if match else None

    @property
    def thread_root(self) -> str:
        """The ts of the thread that what belongs to it goes to."""
        return self.thread or self.ts

    @property
    def text(self) -> str:
        """How a Receipt calls it."""
        return ids.message_ref(self.channel, self.ts) + (f"/{self.thread}" if self.thread else "")


def thread_of(message: Message) -> str | None:
    """Return the thread a message belongs to: the target's own, or that of the job's card."""
    root = MessageRef.parse(message.root)
    return message.thread or (root.thread_root if root is not None else None)


def metadata(message: Message) -> dict[str, Any]:
    """Return what a message is found by."""
    return {"event_type": METADATA_EVENT, "event_payload": {"delivery_id": message.marker}}


def file_title(message: Message, name: str) -> str:
    """Return the title of a file, by which it is found: files carry no metadata."""
    return f"{name} · {message.marker[:_TAG]}"


def matches(message: Message, found: Any) -> bool:
    """Return whether this entry of a history is that message."""
    if not isinstance(found, dict):
        return False
    if message.kind is not DeliveryKind.FILE:
        carried = found.get("metadata")
        if not isinstance(carried, dict) or carried.get("event_type") != METADATA_EVENT:
            return False
        payload = carried.get("event_payload")
        return isinstance(payload, dict) and payload.get("delivery_id") == message.marker
    tag = f" · {message.marker[:_TAG]}"
    files = found.get("files")
    return isinstance(files, list) and any(
        isinstance(one, dict) and str(one.get("title", "")).endswith(tag) for one in files
    )


def resolve_target(message: Message) -> Message:
    """Return the message to where Slack finds it: of a stranger's account the id alone."""
    return replace(message, target=account_user_id(message.target))


def account_user_id(account: str) -> str:
    """Return the id that Slack calls somebody by; their account may name their workspace, too."""
    return account.partition("@")[0]


def is_person(target: str) -> bool:
    """Return whether a target is somebody's own conversation with the bot, by their id."""
    return target.startswith(("U", "W"))


def is_direct(target: str) -> bool:
    """Return whether nobody but one person reads it."""
    return is_person(target) or target.startswith("D")
