"""Each fault of the fake reaches the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import json

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from draftsman_testing.slack import FakeSlack, Fault, error
from draftsman_testing.slack.world import Hook
from draftsman_testing.waits import until


async def post(client: AsyncWebClient, channel: str) -> None:
    await client.chat_postMessage(channel=channel, text="one")


@pytest.mark.parametrize(("fault", "stored_count"), [(Fault.DROP_BEFORE, 0), (Fault.DROP_AFTER, 1)])
async def test_connection_is_dropped(
    slack: FakeSlack, client: AsyncWebClient, general: str, fault: Fault, stored_count: int
) -> None:
    slack.faults.next("chat.postMessage", fault)
    with pytest.raises(aiohttp.ClientConnectionError):
        await post(client, general)
    assert len(slack.messages(general)) == stored_count
    await post(client, general)
    assert len(slack.messages(general)) == stored_count + 1


async def test_the_sdk_by_itself_posts_twice(slack: FakeSlack, general: str) -> None:
    hasty = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
    slack.faults.next("chat.postMessage", Fault.DROP_AFTER)
    await post(hasty, general)
    assert len(slack.messages(general)) == 2


@pytest.mark.parametrize(("fault", "stored_count"), [(Fault.HTML_503, 0), (Fault.HTML_AFTER, 1)])
async def test_error_page_replaces_the_response(
    slack: FakeSlack, client: AsyncWebClient, general: str, fault: Fault, stored_count: int
) -> None:
    slack.faults.next("chat.postMessage", fault)
    with pytest.raises(SlackApiError) as caught:
        await post(client, general)
    assert caught.value.response.status_code == 503
    assert not isinstance(caught.value.response.data, dict) or "error" not in caught.value.response
    assert len(slack.messages(general)) == stored_count


@pytest.mark.parametrize("fault", [Fault.GARBAGE_AFTER, Fault.CUT_AFTER])
async def test_invalid_json_is_returned(
    slack: FakeSlack, client: AsyncWebClient, general: str, fault: Fault
) -> None:
    slack.faults.next("chat.postMessage", fault)
    with pytest.raises(SlackApiError):
        await post(client, general)
    assert len(slack.messages(general)) == 1


async def test_rate_limited_calls_get_retry_after(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    slack.faults.next("chat.postMessage", Fault.RATE_LIMIT(30))
    with pytest.raises(SlackApiError) as caught:
        await post(client, general)
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "30"
    assert slack.messages(general) == []


async def test_posts_in_a_channel_are_rate_limited(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    slack.api.pace = 60.0
    await post(client, general)
    with pytest.raises(SlackApiError) as caught:
        await post(client, general)
    assert 0 < float(caught.value.response.headers["Retry-After"]) <= 60
    await post(client, slack.channel("other"))
    slack.later(60)
    await post(client, general)


async def test_call_with_a_late_response_takes_effect(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    slack.faults.next("chat.postMessage", Fault.SLOW(0.5))
    client.timeout = 0.01  # type: ignore[assignment]
    while not slack.faults.seen:  # on a busy machine its time is over before it was sent
        with pytest.raises(asyncio.TimeoutError):
            await post(client, general)

    async def look() -> bool:
        return bool(slack.messages(general))

    await until(look, "the message")
    assert slack.calls[-1].outcome == "ok"


async def test_any_error_can_be_injected(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    slack.faults.next("chat.postMessage", error("restricted_action"), times=2)
    for _ in range(2):
        with pytest.raises(SlackApiError, match="restricted_action"):
            await post(client, general)
    await post(client, general)
    assert [call.outcome for call in slack.calls] == ["restricted_action"] * 2 + ["ok"]


async def test_queued_fault_waits_for_its_method_and_its_turn(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    slack.faults.next("chat.postMessage", Fault.PASS)
    slack.faults.next("chat.postMessage", error("fatal_error"))
    await client.auth_test()
    await post(client, general)
    assert slack.faults.left == 1
    with pytest.raises(SlackApiError, match="fatal_error"):
        await post(client, general)
    assert slack.faults.seen == {"error": 1}


async def test_random_faults_are_the_same_for_a_seed(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    async def outcomes() -> list[str]:
        first_call = len(slack.calls)
        slack.faults.random(7, {Fault.HTML_503: 0.3, error("fatal_error"): 0.3}, ("api.test",))
        for _ in range(30):
            await client.api_test()
            with contextlib.suppress(SlackApiError):
                await client.auth_test()
        return [call.outcome for call in slack.calls[first_call:]]

    first = await outcomes()
    assert set(first[1::2]) == {"ok", "html 503", "fatal_error"}
    assert set(first[::2]) == {"ok"}
    assert await outcomes() == first
    slack.faults.clear()
    await client.auth_test()


async def test_fault_rates_above_one_are_refused(slack: FakeSlack) -> None:
    with pytest.raises(ValueError, match="more than 1"):
        slack.faults.random(1, {Fault.HTML_503: 0.6, Fault.DROP_AFTER: 0.6})


async def test_uploads_and_response_urls_fail_too(
    slack: FakeSlack, client: AsyncWebClient, general: str, anna: str
) -> None:
    slack.faults.next("upload", Fault.DROP_AFTER)
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.files_upload_v2(channel=general, filename="a", content="a")
    assert slack.files == []
    hook = AsyncWebhookClient(
        slack.world.hook(Hook(anna, general, slack.world.now())), retry_handlers=[]
    )
    slack.faults.next("response_url", Fault.HTML_503)
    assert (await hook.send(text="one")).status_code == 503
    assert slack.ephemerals(general, anna) == []
    assert [call.outcome for call in slack.calls] == ["ok", "ok", "html 503"]
    assert json.dumps(slack.calls[-1].args) == '{"text": "one"}'
