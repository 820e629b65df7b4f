"""The contracts of channels, for Trello."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.deliveries.markdown import marker_of
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.delivery_contract import DeliveryContract
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.trello import FakeTrello, Limits, error
from draftsman_testing.trello import Fault as TrelloFault
from tests.bots.trello.channel_fixtures import CardHarness, trello_channel

LIVE = re.compile(r"[^\\](?:\]\(|<[a-z!]|\*\*b)")
FENCED = re.compile("(?s)```.*?```")
COMMENTS = ("POST", "/cards/{id}/actions/comments")
FILES = ("POST", "/cards/{id}/attachments")


class TrelloPlace(CardHarness):
    """A card of a board."""

    finds = True
    faults = frozenset(Fault)
    invites = "To answer, comment"
    missing = "f" * 24

    def __init__(self, trello: FakeTrello, channel: TrelloChannel) -> None:
        super().__init__(trello)
        self.channel = channel
        self.target = f"trello:{self.card}"

    def posts(self) -> list[Post]:
        return [Post(marker_of(text) or "", text) for text in self.comments]

    def active_markup(self) -> list[str]:
        """Return mentions and links."""
        return LIVE.findall("".join(FENCED.sub("", text) for text in self.comments)) + [
            text for text in self.comments if re.search("@\\w", text)
        ]

    def files(self) -> list[bytes]:
        return [attachment.data or b"" for attachment in self.trello.attachments(self.card)]

    def calls(self) -> int:
        return len(self.trello.calls)

    async def fail(self, fault: Fault) -> None:
        match fault:
            case Fault.LOST_REPLY:
                self.trello.faults.next(*COMMENTS, TrelloFault.DROP_AFTER)
            case Fault.RATE_LIMIT:
                self.trello.faults.next(*COMMENTS, TrelloFault.RATE_LIMIT)
            case Fault.REFUSED:
                self.trello.faults.next(*COMMENTS, error(400, "invalid value for text"))
            case Fault.UNREACHABLE:
                await self.trello.__aexit__(None, None, None)
            case Fault.FILE_REFUSED:
                self.trello.faults.next(*FILES, error(413, "too large"))
            case Fault.REVOKED:
                self.trello.revoke()
            case Fault.TARGET_GONE:
                self.trello.delete_card(self.card)
            case Fault.STATUS_GONE:
                self.trello.delete_comment(self.trello.comments(self.card)[0].id)


@pytest.fixture
async def place() -> AsyncIterator[TrelloPlace]:
    """Give a card; Trello says how long its window is, not when to come back."""
    async with FakeTrello(Limits(window=RETRY_AFTER)) as trello, trello_channel(trello) as channel:
        yield TrelloPlace(trello, channel)


class TestCalls(ChannelContract):
    """The calls."""


class TestDeliveries(DeliveryContract):
    """The messages of jobs."""
