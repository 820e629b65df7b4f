"""The contracts of channels, for Trello."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from draftsman.runtime import Runtime
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_bots.trello.deliveries.markdown import marker_of
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.delivery_contract import DeliveryContract
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import run_dispatcher
from draftsman_testing.people import People
from draftsman_testing.trello import FakeTrello, Limits, error
from draftsman_testing.trello import Fault as TrelloFault
from tests.bots.story import ToldConversation
from tests.bots.trello.channel_fixtures import CardHarness, trello_channel
from tests.bots.trello.inbound.conftest import TrelloBotHarness

LIVE = re.compile(r"[^\\](?:\]\(|<(?!https://[^\s<>]+>)[a-z!]|\*\*b)")
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
        self.targets = (self.target,)

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


class TrelloTalk(TrelloPlace):
    """A card of a watched board, whose bot gets webhooks."""

    takes_requests = True
    anyone_requests = True
    reports_changes = True

    def __init__(
        self, trello: FakeTrello, channel: TrelloChannel, make: Factory, people: People
    ) -> None:
        super().__init__(trello, channel)
        self._bot = TrelloBotHarness(trello, make.rt, make, people)
        self._users = {"anna": self._bot.anna, "ben": self._bot.ben, "mallory": self._bot.mallory}
        self._users["carol"] = trello.member("Carol")
        self.accounts = {name: self._users[name] for name in ("anna", "ben", "carol")}
        self.card = self._bot.card()
        self.target = f"trello:{self.card}"
        self.targets = (self.target,)

    @asynccontextmanager
    async def running(self, rt: Runtime) -> AsyncIterator[None]:
        self._bot.context.me.id = self.trello.bot_member
        await self._bot.watch()
        await self._bot.poll()
        await self._bot.serve_webhook()
        async with run_dispatcher(rt, self.channel):
            yield
        await self._bot.close()

    async def request(self, person: str, text: str) -> None:
        self.trello.describe(self.card, text)
        if "draftsman" in self.trello.labels_of(self.card):
            self.trello.remove_label(self.card, self._bot.label)
        self.trello.add_label(self.card, self._bot.label, self._users[person])
        await self._bot.deliver_webhooks()

    async def say(self, person: str, text: str) -> str:
        comment = self.trello.comment(self.card, self._users[person], text)
        await self._bot.deliver_webhooks()
        return comment

    async def edit(self, key: str, text: str) -> None:
        self.trello.edit_comment(key, text)
        await self._bot.deliver_webhooks()

    async def delete(self, key: str) -> None:
        self.trello.delete_comment(key)
        await self._bot.deliver_webhooks()

    async def repeat(self, key: str) -> None:
        await self._bot.deliver_webhooks(replay=True)

    def told(self) -> list[str]:
        return [post.text for post in self.posts() if post.marker]


@pytest.fixture
async def place() -> AsyncIterator[TrelloPlace]:
    """Give a card; Trello says how long its window is, not when to come back."""
    async with (
        FakeTrello(Limits(window=RETRY_AFTER, told=True)) as trello,
        trello_channel(trello) as channel,
    ):
        yield TrelloPlace(trello, channel)


class TestCalls(ChannelContract):
    """The calls."""


class TestDeliveries(DeliveryContract):
    """The messages of jobs."""


class TestConversation(ToldConversation):
    """What people write."""

    @pytest.fixture
    async def place(self, make: Factory, people: People) -> AsyncIterator[TrelloTalk]:
        async with FakeTrello() as trello, trello_channel(trello) as channel:
            yield TrelloTalk(trello, channel, make, people)
