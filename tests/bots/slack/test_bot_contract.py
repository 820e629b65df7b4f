"""The contract of all bots, for Slack."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from draftsman_testing.slack import FakeSlack, Fault, error
from draftsman_testing.slack.message_store import remove
from tests.bots.bot_contract import BotContract
from tests.bots.slack.channel_fixtures import Json, shown, slack_channel

POST = "chat.postMessage"
LIVE = re.compile(r"<(?:[@#]|!(?!date))[^>]*>|<http[^>]*\|[^>]*>")


class SlackSide:
    """A channel of a workspace."""

    invites = "in this thread, or in a terminal"

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        self._room = slack.channel("ops", [slack.user("carol", id="U-CAROL")])
        self.channel = slack_channel(slack)
        self.notify = (f"slack:{self._room}",)

    def texts(self) -> list[str]:
        """Return the visible text of each message except files."""
        return [shown(item) for item in self._all() if not item.get("files")]

    def _all(self) -> list[Json]:
        top = self._slack.messages(self._room)
        return [
            *top,
            *(message for card in top for message in self._slack.messages(self._room, card["ts"])),
        ]

    def live(self) -> list[str]:
        """Return commands, mentions and links, which only mrkdwn can contain."""
        return LIVE.findall("".join(text for item in self._all() for text in mrkdwn(item)))

    def files(self) -> list[bytes]:
        """Return the uploaded files."""
        return [file["data"] for file in self._slack.files]

    def calls(self) -> int:
        """Return the number of calls."""
        return len(self._slack.calls)

    def drop_next_response(self) -> None:
        """Disconnect after the next post."""
        self._slack.faults.next(POST, Fault.DROP_AFTER)

    def rate_limit_next(self) -> None:
        """Rate limit the next post."""
        self._slack.faults.next(POST, Fault.RATE_LIMIT(30))

    def reject_file(self) -> None:
        self._slack.faults.next("files.getUploadURLExternal", error("file_uploads_disabled"))

    def revoke(self) -> None:
        """Revoke the token."""
        self._slack.revoke()

    def remove_destination(self) -> None:
        """Archive the channel."""
        self._slack.world.channels[self._room].archived = True

    def delete_status_message(self) -> None:
        (card,) = self._slack.messages(self._room)
        remove(self._slack.world.channels[self._room], card["ts"])


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


class TestSlack(BotContract):
    """The contract, over Slack."""

    @pytest.fixture
    async def side(self) -> AsyncIterator[SlackSide]:
        async with FakeSlack() as slack:
            yield SlackSide(slack)
