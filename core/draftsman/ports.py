"""What others supply: the channels that people are reached through, and who writes to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from draftsman.domain.messages.delivery import ChannelName, File, Message, RateLimit, SendResult
from draftsman.domain.run import Lease
from draftsman.errors import Failure


class Channel(Protocol):
    """One way to reach people. `tests/core/channels/contract.py` says what each must do.

    A call returns how it ended and raises nothing: a Receipt, an Unknown when it may have arrived,
    or a Failure, translated from the foreign error, when it did not. `Failure.retry_after` closes
    a bucket for everybody for so long; a copy to edit that is gone has the code `copy_gone`, a
    target that nothing reaches `target_gone`. A call ends by itself within the configured
    `timeout`.
    """

    name: ChannelName

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the buckets that sending this message takes from, of its account and method."""
        ...

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket that its `retry_after` closes: a method's, a target's, an account's."""
        ...

    async def send(self, message: Message) -> SendResult:
        """Post it, with its marker."""
        ...

    async def find(self, message: Message) -> SendResult | None:
        """Look for the copy with the marker of this message.

        None: it is not there, or repeating it does no harm.
        """
        ...

    async def edit(self, message: Message) -> SendResult:
        """Rewrite the copy `message.edits`: what people could press is gone from a closed one."""
        ...

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post a file, with its marker."""
        ...

    async def close(self) -> None:
        """Let go of what it holds open."""
        ...


class Notifier(Protocol):
    """Sends messages to people."""

    async def notify(self, lease: Lease, key: str, targets: Sequence[str], text: str) -> list[int]:
        """Put a message for each target on its way; return the numbers of the deliveries.

        A target is `log`, `channel:place`, …; none given: the targets of the job. The messages are
        written with the run's lease, in one transaction, and once for a key. Raises LeaseLost, and
        UsageError for a target that cannot be meant or when there is none.
        """
        ...
