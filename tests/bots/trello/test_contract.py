"""The contract of every channel, for the Trello channel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.deliveries.markdown import marker_of
from draftsman_testing.trello import FakeTrello, Fault, Limits, error
from tests.bots.channel_alias import ChannelAlias
from tests.bots.trello.channel_fixtures import CardHarness, trello_channel
from tests.core.deliveries.channels.channel_contract import ChannelContract

COMMENTS = "/cards/{id}/actions/comments"


class TrelloChannelHarness:
    """A board; the contract's target `ops` is a card on it."""

    finds = True
    cuts = True

    def __init__(self, trello: FakeTrello, channel: TrelloChannel) -> None:
        self._trello = trello
        self._wall = CardHarness(trello)
        self.channel = ChannelAlias(channel, self._wall.card, "f" * 24)

    async def seen(self) -> list[tuple[str, str]]:
        """Return the marker and text of each comment."""
        return [(marker_of(text) or "", text) for text in self._wall.comments]

    async def drop_next_response(self) -> None:
        """Hang up when the next comment is there."""
        self._trello.faults.next("POST", COMMENTS, Fault.DROP_AFTER)

    async def reject_next(self, status: int, retry_after: str | None = None) -> None:
        """Refuse the next comment; Trello says how long its window is, not when to come back."""
        assert retry_after in (None, "7")
        fault = Fault.RATE_LIMIT if retry_after else error(status, "invalid value for text")
        self._trello.faults.next("POST", COMMENTS, fault)

    async def stop_listening(self) -> None:
        """Close the port."""
        await self._trello.__aexit__(None, None, None)


class TestTrello(ChannelContract):
    """The contract."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[TrelloChannelHarness]:
        async with FakeTrello(Limits(window=7)) as trello, trello_channel(trello) as channel:
            yield TrelloChannelHarness(trello, channel)
