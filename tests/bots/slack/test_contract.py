"""The contract of all channels, for Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from draftsman_testing.slack import FakeSlack, Fault, error
from tests.bots.channel_alias import ChannelAlias
from tests.bots.slack.channel_fixtures import slack_channel
from tests.core.deliveries.channels.channel_contract import ChannelContract


class SlackChannelHarness:
    """A workspace; the contract's target `ops` is a channel in it."""

    finds = True
    cuts = True

    def __init__(self, slack: FakeSlack) -> None:
        self._slack = slack
        self._room = slack.channel("ops")
        self.channel = ChannelAlias(slack_channel(slack), self._room, f"{self._room}/1.1")

    async def seen(self) -> list[tuple[str, str]]:
        """Return the marker and text of each message."""
        return [
            (message["metadata"]["event_payload"]["delivery_id"], message["text"])
            for message in self._slack.messages(self._room)
            if "metadata" in message
        ]

    async def drop_next_response(self) -> None:
        """Disconnect after the next post."""
        self._slack.faults.next("chat.postMessage", Fault.DROP_AFTER)

    async def reject_next(self, status: int, retry_after: str | None = None) -> None:
        """Reject the next post."""
        fault = Fault.RATE_LIMIT(float(retry_after)) if retry_after else error("too_many_pins")
        self._slack.faults.next("chat.postMessage", fault)

    async def stop_listening(self) -> None:
        """Close the port."""
        await self._slack.__aexit__(None, None, None)


class TestSlack(ChannelContract):
    """The contract, over Slack."""

    @pytest.fixture
    async def harness(self) -> AsyncIterator[SlackChannelHarness]:
        async with FakeSlack() as slack:
            yield SlackChannelHarness(slack)
