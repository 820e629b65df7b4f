"""Interfaces that adapters implement: channels and the notifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from draftsman.domain.messages.delivery import ChannelName, File, Message, RateLimit, SendResult
from draftsman.domain.run import Lease
from draftsman.errors import Failure


class Channel(Protocol):
    """A way to reach people. `tests/core/channels/contract.py` is its contract.

    A call returns its outcome and raises nothing: a Receipt; an Unconfirmed when the message may
    have arrived; or a Failure, translated from the foreign error, when it did not.
    `Failure.retry_after` closes a bucket for all deliveries for that many seconds. The code is
    `copy_gone` for a deleted copy, `target_gone` for a target that no longer exists. A call ends
    within the configured `timeout`.
    """

    name: ChannelName

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the rate limits of this message, such as those of its account and method."""
        ...

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket that the failure's `retry_after` closes."""
        ...

    async def send(self, message: Message) -> SendResult:
        """Post the message with its marker."""
        ...

    async def find(self, message: Message) -> SendResult | None:
        """Find the copy with the marker of this message.

        None means that there is none, or that the message may safely be sent again.
        """
        ...

    async def edit(self, message: Message) -> SendResult:
        """Update the copy `message.edits`; a closed question loses its buttons."""
        ...

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post a file with its marker."""
        ...

    async def close(self) -> None:
        """Close connections and files."""
        ...


class Notifier(Protocol):
    """Sends messages to people."""

    async def notify(self, lease: Lease, key: str, targets: Sequence[str], text: str) -> list[int]:
        """Enqueue a message for each target; return the numbers of the deliveries.

        A target is `log`, `slack:CHANNEL`, …; without targets the job's own are used. The messages
        are written with the run's lease, in one transaction, and once per key. Raises LeaseLost,
        and UsageError for an invalid target or when there is none.
        """
        ...
