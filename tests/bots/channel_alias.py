"""A wrapper that gives a channel the names of the channel contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import File, Message, RateLimit, SendResult
from draftsman.errors import Failure


class ChannelAlias:
    """The channel, for messages to the target `ops` and edits of `ref`."""

    def __init__(self, channel: Channel, target: str, ref: str) -> None:
        """Take the target that `ops` stands for, and a copy in it that was never posted."""
        self._channel = channel
        self._target = target
        self._ref = ref
        self.name = channel.name

    def limits(self, message: Message) -> Sequence[RateLimit]:
        return self._channel.limits(self._to(message))

    def bucket(self, message: Message, failure: Failure) -> str:
        return self._channel.bucket(self._to(message), failure)

    async def send(self, message: Message) -> SendResult:
        return await self._channel.send(self._to(message))

    async def find(self, message: Message) -> SendResult | None:
        return await self._channel.find(self._to(message))

    async def edit(self, message: Message) -> SendResult:
        return await self._channel.edit(self._to(message))

    async def upload(self, message: Message, file: File) -> SendResult:
        return await self._channel.upload(self._to(message), file)

    async def close(self) -> None:
        await self._channel.close()

    def _to(self, message: Message) -> Message:
        edits = self._ref if message.edits == "ref" else message.edits
        return replace(message, target=self._target, edits=edits)
