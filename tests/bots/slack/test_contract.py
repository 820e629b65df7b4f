"""The contract of every channel, kept by the one of Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from draftsman.domain.delivery import Ended, File, Limit, Message
from draftsman.errors import Failure
from draftsman_bots.slack.channel import SlackChannel
from tests.bots.slack.desk import speaking
from tests.core.channels.contract import ChannelContract
from tests.support.slack import FakeSlack, Fault, error


class SlackPlace:
    """A workspace; the contract's target `ops` is a channel of it."""

    finds, cuts = True, True

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        self._room = slack.channel("ops")
        self.channel = Readdressed(speaking(slack), self._room)

    async def seen(self) -> list[tuple[str, str]]:
        """Return the marker and text of each message."""
        return [
            (one["metadata"]["event_payload"]["delivery_id"], one["text"])
            for one in self._slack.messages(self._room)
            if "metadata" in one
        ]

    async def cut_the_next_reply(self) -> None:
        """Hang up when the next post is done."""
        self._slack.faults.next("chat.postMessage", Fault.DROP_AFTER)

    async def refuse_the_next(self, status: int, retry_after: str | None = None) -> None:
        """Refuse the next post."""
        fault = Fault.RATE_LIMIT(float(retry_after)) if retry_after else error("too_many_pins")
        self._slack.faults.next("chat.postMessage", fault)

    async def go_away(self) -> None:
        """Close the port."""
        await self._slack.__aexit__(None, None, None)


class Readdressed:
    """The channel, for messages that name `ops`."""

    def __init__(self, channel: SlackChannel, room: str) -> None:
        self._channel = channel
        self._room = room
        self.name = channel.name

    def _to(self, message: Message) -> Message:
        edits = f"{self._room}/1.1" if message.edits == "ref" else message.edits
        return replace(message, target=self._room, edits=edits)

    def limits(self, message: Message) -> list[Limit]:
        return list(self._channel.limits(self._to(message)))

    def bucket(self, message: Message, failure: Failure) -> str:
        return self._channel.bucket(self._to(message), failure)

    async def send(self, message: Message) -> Ended:
        return await self._channel.send(self._to(message))

    async def find(self, message: Message) -> Ended | None:
        return await self._channel.find(self._to(message))

    async def edit(self, message: Message) -> Ended:
        return await self._channel.edit(self._to(message))

    async def upload(self, message: Message, file: File) -> Ended:
        return await self._channel.upload(self._to(message), file)

    async def close(self) -> None:
        await self._channel.close()


class TestSlack(ChannelContract):
    """The contract."""

    @pytest.fixture
    async def place(self) -> AsyncIterator[SlackPlace]:
        async with FakeSlack() as slack:
            yield SlackPlace(slack)
