"""Fixtures: a fake Slack, the SDK's client, and members of a channel."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_testing.slack import FakeSlack


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as one:
        yield one


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    """Provide a client without retries."""
    return AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])


@pytest.fixture
def anna(slack: FakeSlack) -> str:
    return slack.user("anna")


@pytest.fixture
def general(slack: FakeSlack, anna: str) -> str:
    """Provide a channel with a person and the bot."""
    return slack.channel("general", [anna])
