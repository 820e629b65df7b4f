"""The official SDK works against the fake as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.support.slack import FakeSlack


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    """Give a fake."""
    async with FakeSlack() as one:
        yield one


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    """Give the SDK's client."""
    return AsyncWebClient(slack.bot_token, base_url=slack.api_url, retry_handlers=[])


async def test_a_message_is_posted_changed_and_deleted(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    anna = slack.user("anna")
    general = slack.channel("general", [anna])
    posted = await client.chat_postMessage(channel=general, text="one")
    await client.chat_update(channel=general, ts=posted["ts"], text="two")
    assert [message["text"] for message in slack.messages(general)] == ["two"]
    await client.chat_delete(channel=general, ts=posted["ts"])
    assert slack.messages(general) == []
    assert [call.outcome for call in slack.calls] == ["ok"] * 3


async def test_a_file_is_uploaded(slack: FakeSlack, client: AsyncWebClient) -> None:
    general = slack.channel("general")
    posted = await client.chat_postMessage(channel=general, text="one")
    await client.files_upload_v2(
        channel=general, thread_ts=posted["ts"], filename="a.patch", content="diff"
    )
    assert [file["data"] for file in slack.files] == [b"diff"]
    assert slack.messages(general, posted["ts"])[0]["files"][0]["name"] == "a.patch"
