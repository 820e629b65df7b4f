"""The contracts of channels, for Slack."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from draftsman.runtime import Runtime
from draftsman_testing.channel.channel_contract import ChannelContract
from draftsman_testing.channel.delivery_contract import DeliveryContract
from draftsman_testing.channel.place import RETRY_AFTER, Fault, Post
from draftsman_testing.slack import Ack, FakeSlack, error
from draftsman_testing.slack import Fault as SlackFault
from draftsman_testing.slack.message_store import remove
from tests.bots.slack.channel_fixtures import Json, shown, slack_channel
from tests.bots.slack.transport import service_harness
from tests.bots.story import ToldConversation

POST = "chat.postMessage"
LIVE = re.compile(r"<(?:[@#]|!(?!date))[^>]*>|<http[^>]*\|[^>]*>")


class SlackPlace:
    """A channel of a workspace."""

    finds = True
    faults = frozenset(Fault)
    invites = "in this thread, or in a terminal"

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        self._room = slack.channel("ops", [slack.user("carol", id="U-CAROL")])
        self.channel = slack_channel(slack)
        self.target = f"slack:{self._room}"
        self.targets = (self.target,)
        self.missing = f"{self._room}/1.1"

    def posts(self) -> list[Post]:
        return [Post(_marker(item), shown(item)) for item in self._all() if not item.get("files")]

    def _all(self) -> list[Json]:
        top = self._slack.messages(self._room)
        return [
            *top,
            *(message for card in top for message in self._slack.messages(self._room, card["ts"])),
        ]

    def active_markup(self) -> list[str]:
        """Return commands, mentions and links, which only mrkdwn can contain."""
        return LIVE.findall("".join(text for item in self._all() for text in mrkdwn(item)))

    def files(self) -> list[bytes]:
        return [file["data"] for file in self._slack.files]

    def calls(self) -> int:
        return len(self._slack.calls)

    async def fail(self, fault: Fault) -> None:
        match fault:
            case Fault.LOST_REPLY:
                self._slack.faults.next(POST, SlackFault.DROP_AFTER)
            case Fault.RATE_LIMIT:
                self._slack.faults.next(POST, SlackFault.RATE_LIMIT(RETRY_AFTER))
            case Fault.REFUSED:
                self._slack.faults.next(POST, error("too_many_pins"))
            case Fault.UNREACHABLE:
                await self._slack.__aexit__(None, None, None)
            case Fault.FILE_REFUSED:
                fault_of_upload = error("file_uploads_disabled")
                self._slack.faults.next("files.getUploadURLExternal", fault_of_upload)
            case Fault.REVOKED:
                self._slack.revoke()
            case Fault.TARGET_GONE:
                self._slack.world.channels[self._room].archived = True
            case Fault.STATUS_GONE:
                (card,) = self._slack.messages(self._room)
                remove(self._slack.world.channels[self._room], card["ts"])


def _marker(message: Json) -> str:
    return str(message.get("metadata", {}).get("event_payload", {}).get("delivery_id", ""))


def mrkdwn(message: Any) -> Iterator[str]:
    """Yield every mrkdwn text."""
    if isinstance(message, dict):
        if message.get("type") == "mrkdwn":
            yield message["text"]
        for value in message.values():
            yield from mrkdwn(value)
    elif isinstance(message, list):
        for value in message:
            yield from mrkdwn(value)


class SlackTalk(SlackPlace):
    """The channel with people, who write in threads, and the whole bot."""

    takes_requests = True
    anyone_requests = False
    reports_changes = True

    def __init__(self, slack: FakeSlack) -> None:
        super().__init__(slack)
        self.accounts = {name: f"U{name.upper()}" for name in ("anna", "ben", "carol")}
        self._users = {**self.accounts, "mallory": "UMALLORY"}
        for name, user in self._users.items():
            slack.user(name, id=user)
            slack.world.channels[self._room].members.add(user)
        self._acks: dict[str, Ack] = {}

    @asynccontextmanager
    async def running(self, rt: Runtime) -> AsyncIterator[None]:
        async with service_harness.serving(rt, self._slack):
            yield

    async def request(self, person: str, text: str) -> None:
        await self._slack.mention(self._users[person], self._room, f"fix {text}")

    async def say(self, person: str, text: str) -> str:
        thread = self._slack.messages(self._room)[-1]["ts"]
        ack = await self._slack.say(self._users[person], self._room, text, thread)
        self._acks[ack.ts] = ack
        return ack.ts

    async def edit(self, key: str, text: str) -> None:
        await self._slack.edit(self._room, key, text)

    async def delete(self, key: str) -> None:
        await self._slack.delete(self._room, key)

    async def repeat(self, key: str) -> None:
        await self._slack.again(self._acks[key])

    def told(self) -> list[str]:
        people = self._users.values()
        private = (item for user in people for item in self._slack.ephemerals(self._room, user))
        return [post.text for post in self.posts()] + [item["text"] for item in private]


@pytest.fixture
async def place() -> AsyncIterator[SlackPlace]:
    async with FakeSlack() as slack:
        yield SlackPlace(slack)


class TestCalls(ChannelContract):
    """The calls."""


class TestDeliveries(DeliveryContract):
    """The messages of jobs."""


class TestConversation(ToldConversation):
    """What people write."""

    @pytest.fixture
    async def place(self) -> AsyncIterator[SlackTalk]:
        async with FakeSlack() as slack:
            yield SlackTalk(slack)
            assert slack.complaints == []
