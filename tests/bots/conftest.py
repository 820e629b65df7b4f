"""A fake Slack, the SDK's own client for it, and a real Bolt app on its sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.support.slack import FakeSlack


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    """Give a workspace."""
    async with FakeSlack() as one:
        yield one


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    """Give a client that repeats nothing by itself."""
    return AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])


@pytest.fixture
def anna(slack: FakeSlack) -> str:
    """Give a person."""
    return slack.user("anna")


@pytest.fixture
def general(slack: FakeSlack, anna: str) -> str:
    """Give a channel with a person and the bot in it."""
    return slack.channel("general", [anna])
