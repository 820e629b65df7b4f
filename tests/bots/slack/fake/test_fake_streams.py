"""The fake's streams and statuses of threads, through the SDK."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.message_store import STREAM_LIFE, put
from draftsman_testing.slack.world import STATUS_LIFE
from tests.bots.slack.fake.test_fake_refusals import refusal

STEP = {"type": "task_update", "id": "1", "title": "write tests", "status": "in_progress"}
PLAN = {"type": "plan_update", "title": "0 of 2 steps"}


@pytest.fixture
async def thread(client: AsyncWebClient, general: str) -> str:
    return str((await client.chat_postMessage(channel=general, text="a card"))["ts"])


@pytest.fixture
def reader(slack: FakeSlack, anna: str) -> dict[str, Any]:
    return {"recipient_user_id": anna, "recipient_team_id": slack.team}


async def error(call: Awaitable[Any]) -> str:
    return str((await refusal(call))["error"])


async def test_a_stream_grows_by_chunks_until_it_is_stopped(
    slack: FakeSlack, client: AsyncWebClient, general: str, thread: str, reader: dict[str, Any]
) -> None:
    where: dict[str, Any] = {"channel": general, "thread_ts": thread}
    started = await client.chat_startStream(**where, chunks=[PLAN, STEP], **reader)
    at: dict[str, Any] = {"channel": general, "ts": started["ts"]}
    await client.chat_appendStream(**at, chunks=[STEP | {"status": "complete"}])
    (stream,) = slack.streams(general, thread)
    assert stream["open"]
    assert stream["stream"]["plan"] == "0 of 2 steps"
    assert stream["stream"]["tasks"]["1"]["status"] == "complete"
    assert await error(client.chat_update(**at, text="x")) == "streaming_state_conflict"
    await client.chat_stopStream(**at, chunks=[PLAN | {"title": "done"}])
    (stream,) = slack.streams(general)
    assert (stream["open"], stream["stream"]["plan"]) == (False, "done")
    gone = "message_not_in_streaming_state"
    assert await error(client.chat_appendStream(**at, chunks=[STEP])) == gone
    assert await error(client.chat_stopStream(**at)) == gone
    await client.chat_update(**at, text="x")


async def test_slack_closes_a_stream_after_five_minutes(
    slack: FakeSlack, client: AsyncWebClient, general: str, thread: str, reader: dict[str, Any]
) -> None:
    where: dict[str, Any] = {"channel": general, "thread_ts": thread}
    started = await client.chat_startStream(**where, chunks=[STEP], **reader)
    at: dict[str, Any] = {"channel": general, "ts": started["ts"]}
    slack.later(STREAM_LIFE - 1)
    await client.chat_appendStream(**at, chunks=[STEP])
    slack.later(1)
    call = client.chat_appendStream(**at, chunks=[STEP])
    assert await error(call) == "message_not_in_streaming_state"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"recipient_user_id": None}, "missing_recipient_user_id"),
        ({"recipient_team_id": None}, "missing_recipient_team_id"),
        ({"recipient_user_id": "U-NOBODY"}, "user_not_found"),
        ({"channel": "C-NONE"}, "channel_not_found"),
        ({"thread_ts": "1.1"}, "invalid_thread_ts"),
        ({"task_display_mode": "list"}, "invalid_arguments"),
        ({"markdown_text": "x"}, "cannot_provide_both_markdown_text_and_chunks"),
        ({"chunks": [{"type": "task_update", "id": "1", "title": "x"}]}, "invalid_chunks"),
        ({"chunks": [STEP | {"status": "completed"}]}, "invalid_chunks"),
        ({"chunks": [STEP | {"title": "x" * 257}]}, "invalid_chunks"),
        ({"chunks": [STEP | {"color": "red"}]}, "invalid_chunks"),
        ({"chunks": [{"type": "table"}]}, "invalid_chunks"),
        (
            {"chunks": [STEP | {"id": f"{n}", "title": "x" * 256} for n in range(50)]},
            "msg_too_long",
        ),
    ],
)
async def test_a_stream_that_breaks_a_rule_is_refused(
    client: AsyncWebClient, general: str, thread: str, reader: dict[str, Any],
    change: dict[str, Any], code: str,
) -> None:  # fmt: skip
    good: dict[str, Any] = {"channel": general, "thread_ts": thread, "chunks": [STEP], **reader}
    assert await error(client.chat_startStream(**good | change)) == code


async def test_text_and_chunks_are_not_mixed(
    client: AsyncWebClient, general: str, thread: str, reader: dict[str, Any]
) -> None:
    where: dict[str, Any] = {"channel": general, "thread_ts": thread}
    started = await client.chat_startStream(**where, markdown_text="one", **reader)
    at: dict[str, Any] = {"channel": general, "ts": started["ts"]}
    assert await error(client.chat_appendStream(**at, chunks=[STEP])) == "streaming_mode_mismatch"
    assert await error(client.chat_appendStream(**at)) == "no_text"
    with pytest.raises(SlackApiError):
        await client.chat_appendStream(channel=general, ts=thread, markdown_text="x")


async def test_a_status_lives_two_minutes_or_until_a_message_of_the_app(
    slack: FakeSlack, client: AsyncWebClient, general: str, thread: str, anna: str
) -> None:
    where: dict[str, Any] = {"channel_id": general, "thread_ts": thread}
    await client.assistant_threads_setStatus(**where, status="is working")
    put(slack.world, slack.world.channels[general], {"user": anna, "text": "hm"}, thread)
    slack.later(STATUS_LIFE - 1)
    assert slack.status(general, thread) == "is working"
    slack.later(1)
    assert slack.status(general, thread) == ""
    await client.assistant_threads_setStatus(**where, status="is working")
    await client.chat_postMessage(channel=general, text="done", thread_ts=thread)
    assert slack.status(general, thread) == ""
    await client.assistant_threads_setStatus(**where, status="is working")
    await client.assistant_threads_setStatus(**where, status="")
    assert slack.status(general, thread) == ""


async def test_a_status_that_breaks_a_rule_is_refused(
    slack: FakeSlack, client: AsyncWebClient, general: str, thread: str
) -> None:
    async def set_status(**change: Any) -> str:
        good: dict[str, Any] = {"channel_id": general, "thread_ts": thread, "status": "x"}
        return await error(client.assistant_threads_setStatus(**good | change))

    assert await set_status(thread_ts="1.1") == "invalid_thread_ts"
    assert await set_status(status=None) == "invalid_arguments"
    assert await set_status(loading_messages=["x"] * 11) == "invalid_arguments"
    slack.world.no_status.add(general)
    assert await set_status() == "method_not_supported_for_channel_type"
    slack.world.scopes -= {"chat:write", "assistant:write"}
    assert await set_status() == "missing_scope"


async def test_calls_above_the_tier_of_a_method_get_429(
    slack: FakeSlack, client: AsyncWebClient, general: str, thread: str, reader: dict[str, Any]
) -> None:
    slack.api.tiers.enforced = True
    where: dict[str, Any] = {"channel": general, "thread_ts": thread}
    for _ in range(20):
        await client.chat_startStream(**where, chunks=[STEP], **reader)
    assert await error(client.chat_startStream(**where, chunks=[STEP], **reader)) == "ratelimited"
    slack.later(60)
    await client.chat_startStream(**where, chunks=[STEP], **reader)
