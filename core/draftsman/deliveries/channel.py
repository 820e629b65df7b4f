"""The interface of a channel, which adapters implement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from draftsman.channels import ChannelName
from draftsman.deliveries.delivery import File, Message, RateLimit, SendResult
from draftsman.errors import Failure


class Channel(Protocol):
    """A way to reach people. `draftsman_testing.channel` has its contract as tests.

    A call returns its outcome and raises nothing: a Receipt; an Unconfirmed when the message may
    have arrived; or a Failure, translated from the foreign error, when it did not.
    `Failure.retry_after` closes a bucket for all deliveries for that many seconds. The code is
    `copy_gone` for a deleted copy, `target_gone` for a target that no longer exists. A call ends
    within the configured `timeout`. A channel inherits what it does not do otherwise: it serves all
    targets, has no limits, repeats a message that may have arrived, and keeps nothing open.
    """

    name: ChannelName

    def served(self) -> Sequence[str] | None:
        """Return the targets that this process can send to now; None: all.

        The others are left to other processes. A name that ends with `/` is that of all targets
        that begin with it. A call for another target fails with the code `not_served`.
        """
        return None

    def problems(self) -> Sequence[str]:
        """Return what keeps this process from sending to configured targets."""
        return ()

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the rate limits of this message, such as those of its account and method."""
        return ()

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket that the failure's `retry_after` closes."""
        return f"{self.name}:{message.target}"

    async def send(self, message: Message) -> SendResult:
        """Post the message with its marker."""
        ...

    async def find(self, message: Message) -> SendResult | None:
        """Find the copy with the marker of this message.

        None means that there is none, or that the message may safely be sent again.
        """
        return None

    async def edit(self, message: Message) -> SendResult:
        """Update the copy `message.edits`; a closed question loses its buttons."""
        ...

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post a file with its marker."""
        ...

    async def close(self) -> None:
        """Close connections and files, if any stay open."""
        return
