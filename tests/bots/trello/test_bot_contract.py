"""The contract of every bot, for the Trello bot."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_testing.trello import FakeTrello, Fault, error
from tests.bots.bot_contract import BotContract
from tests.bots.trello.channel_fixtures import CardHarness, trello_channel

LIVE = re.compile(r"[^\\](?:\]\(|<[a-z!]|\*\*b)")
FENCED = re.compile("(?s)```.*?```")
COMMENTS = "/cards/{id}/actions/comments"
FILES = "/cards/{id}/attachments"


class TrelloSide(CardHarness):
    """A card of a board."""

    invites = "To answer, comment"

    def __init__(self, trello: FakeTrello, channel: TrelloChannel) -> None:
        super().__init__(trello)
        self.channel = channel
        self.notify = (f"trello:{self.card}",)

    def texts(self) -> list[str]:
        """Return the comments."""
        return self.comments

    def live(self) -> list[str]:
        """Return mentions and links."""
        return LIVE.findall("".join(FENCED.sub("", text) for text in self.comments)) + [
            text for text in self.comments if re.search("@\\w", text)
        ]

    def files(self) -> list[bytes]:
        """Return the attachments."""
        return [attachment.data or b"" for attachment in self.trello.attachments(self.card)]

    def calls(self) -> int:
        """Return how many calls there were."""
        return len(self.trello.calls)

    def drop_next_response(self) -> None:
        """Hang up when the next comment is there."""
        self.trello.faults.next("POST", COMMENTS, Fault.DROP_AFTER)

    def rate_limit_next(self) -> None:
        """Refuse the next comment for a window."""
        self.trello.faults.next("POST", COMMENTS, Fault.RATE_LIMIT)

    def reject_file(self) -> None:
        """Refuse the next file as too large."""
        self.trello.faults.next("POST", FILES, error(413, "too large"))

    def revoke(self) -> None:
        """Revoke the token."""
        self.trello.revoke()

    def remove_destination(self) -> None:
        """Delete the card."""
        self.trello.delete_card(self.card)

    def delete_status_message(self) -> None:
        """Delete the first comment."""
        self.trello.delete_comment(self.trello.comments(self.card)[0].id)


class TestTrello(BotContract):
    """The suite."""

    @pytest.fixture
    async def side(self) -> AsyncIterator[TrelloSide]:
        async with FakeTrello() as trello, trello_channel(trello) as channel:
            yield TrelloSide(trello, channel)
