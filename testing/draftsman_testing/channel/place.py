"""A place in a fake of the service: what a channel's author writes for the contracts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from draftsman.deliveries.channel import Channel

RETRY_AFTER: Final = 7.0
"""Seconds after which a message may be sent again that was refused by `Fault.RATE_LIMIT`."""


class Fault(StrEnum):
    """What the service does wrong."""

    LOST_REPLY = "lost_reply"
    """The next message arrives, and the connection ends without a reply."""
    RATE_LIMIT = "rate_limit"
    """The next message is refused for `RETRY_AFTER` seconds."""
    REFUSED = "refused"
    """The next message is refused for good."""
    UNREACHABLE = "unreachable"
    """From now on nothing listens."""
    FILE_REFUSED = "file_refused"
    """The next file is refused for good."""
    REVOKED = "revoked"
    """From now on the account is refused."""
    TARGET_GONE = "target_gone"
    """The target is deleted."""
    STATUS_GONE = "status_gone"
    """The first message in the target is deleted."""


class Post(NamedTuple):
    """A visible message: the marker that it was sent with, and its text."""

    marker: str
    text: str


class Endpoint(Protocol):
    """A target of a channel, the messages there, and its faults."""

    channel: Channel
    target: str
    """Its notation in a request: `slack:C1`."""
    missing: str
    """The reference of a message that was never sent there."""
    finds: bool
    """Whether the channel can find an earlier copy; if not, a repetition must be harmless."""
    faults: frozenset[Fault]
    """The faults that it can have."""

    def posts(self) -> Sequence[Post]:
        """Return the messages in the target and its threads, without files; the status first."""
        ...

    async def fail(self, fault: Fault) -> None:
        """Have a fault."""
        ...


class Place(Endpoint, Protocol):
    """A target in a chat."""

    invites: str
    """Words that only an open question has: how to answer."""

    def files(self) -> Sequence[bytes]:
        """Return the posted files."""
        ...

    def active_markup(self) -> Sequence[str]:
        """Return what has an effect: notifications, links with a hidden URL, commands."""
        ...

    def calls(self) -> int:
        """Return the number of calls."""
        ...


def address(endpoint: Endpoint) -> str:
    """Return the target as a message has it: `C1`."""
    return endpoint.target.partition(":")[2] or endpoint.target
