"""The contract of every channel, kept by the one of Trello."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from draftsman.domain.delivery import Ended, File, Limit, Message
from draftsman.errors import Failure
from draftsman_bots.trello.channel import TrelloChannel
from draftsman_bots.trello.text import marker_of
from tests.bots.trello.desk import Wall, speaking
from tests.core.channels.contract import ChannelContract
from tests.support.trello import FakeTrello, Fault, Limits, error

COMMENTS = "/cards/{id}/actions/comments"


class TrelloPlace:
    """A board; the contract's target `ops` is a card on it."""

    finds, cuts = True, True

    def __init__(self, trello: FakeTrello, channel: TrelloChannel) -> None:
        self._trello = trello
        self._wall = Wall(trello)
        self.channel = Readdressed(channel, self._wall.card)

    async def seen(self) -> list[tuple[str, str]]:
        """Return the marker and text of each comment."""
        return [(marker_of(text) or "", text) for text in self._wall.comments]

    async def cut_the_next_reply(self) -> None:
        """Hang up when the next comment is there."""
        self._trello.faults.next("POST", COMMENTS, Fault.DROP_AFTER)

    async def refuse_the_next(self, status: int, retry_after: str | None = None) -> None:
        """Refuse the next comment; Trello says how long its window is, not when to come back."""
        assert retry_after in (None, "7")
        fault = Fault.RATE_LIMIT if retry_after else error(status, "invalid value for text")
        self._trello.faults.next("POST", COMMENTS, fault)

    async def go_away(self) -> None:
        """Close the port."""
        await self._trello.__aexit__(None, None, None)


class Readdressed:
    """The channel, for messages that name `ops`."""

    def __init__(self, channel: TrelloChannel, card: str) -> None:
        self._channel = channel
        self._card = card
        self.name = channel.name

    def _to(self, message: Message) -> Message:
        edits = "f" * 24 if message.edits == "ref" else message.edits
        return replace(message, target=self._card, edits=edits)

    def limits(self, message: Message) -> Sequence[Limit]:
        return self._channel.limits(self._to(message))

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


class TestTrello(ChannelContract):
    """The contract."""

    @pytest.fixture
    async def place(self) -> AsyncIterator[TrelloPlace]:
        async with FakeTrello(Limits(window=7)) as trello, speaking(trello) as channel:
            yield TrelloPlace(trello, channel)
