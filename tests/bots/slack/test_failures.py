"""Classification of Slack's errors, each returned by a server to the real client."""

from __future__ import annotations

from dataclasses import replace

import pytest

from draftsman.deliveries.delivery import (
    COPY_GONE,
    TARGET_GONE,
    DeliveryKind,
    DeliveryStatus,
    File,
    Receipt,
    SendResult,
    Unconfirmed,
    after_attempt,
)
from draftsman.errors import Failure
from draftsman.jobs.retries import ErrorClass, RetryPolicy, classify
from draftsman.log import redact
from draftsman_bots.slack.deliveries.channel import SlackChannel
from draftsman_bots.slack.transport.api_errors import ACCOUNT, CONTENT, COPY, TARGET, UNCONFIRMED
from draftsman_testing.slack import FakeSlack, Fault, error
from tests.bots.slack.channel_fixtures import message, shown, slack_channel
from tests.support.cases import cases

POST = "chat.postMessage"
UNLISTED = (
    *("attachment_payload_limit_exceeded", "too_many_attachments", "token_rotation_required"),
    *("as_user_not_supported", "duplicate_channel_not_found", "slack_connect_file_link_sharing"),
)
"""Codes of the reference of chat.postMessage that are not classified."""
LIMITS = RetryPolicy(max_retries=5, base_delay=1, max_delay=2)


@pytest.fixture
def room(slack: FakeSlack) -> str:
    return slack.channel("ops")


@pytest.fixture
def channel(slack: FakeSlack) -> SlackChannel:
    return slack_channel(slack)


def failed(ended: SendResult) -> Failure:
    assert isinstance(ended, Failure), ended
    return ended


async def test_rate_limit_pauses_one_method_in_one_channel(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    slack.faults.next(POST, Fault.RATE_LIMIT(7))
    notification = message(DeliveryKind.NOTICE, room, payload={"text": "hello"})
    ended = failed(await channel.send(notification))
    assert ended.retry_after == 7
    end = after_attempt(ended, 5, LIMITS)
    assert (end.status, end.delay, end.spent) == (DeliveryStatus.PENDING, 7, False)
    closed = channel.bucket(notification, ended)
    assert closed == f"slack#chat.postMessage:{room}"
    assert [limit.bucket for limit in channel.limits(notification)] == [closed]
    other = message(DeliveryKind.NOTICE, "C0OTHER", payload={"text": "hello"})
    assert closed not in {limit.bucket for limit in channel.limits(other)}
    rewritten = replace(notification, edits=f"{room}/1.1")
    assert closed not in {limit.bucket for limit in channel.limits(rewritten)}


async def test_dropped_request_is_not_found(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    slack.faults.next(POST, Fault.DROP_BEFORE)
    notification = message(DeliveryKind.RESULT, room)
    assert isinstance(await channel.send(notification), Unconfirmed)
    assert await channel.find(notification) is None


@pytest.mark.parametrize("code", sorted(ACCOUNT - {"missing_scope"}))
async def test_rejected_token_pauses_the_channel(
    slack: FakeSlack, room: str, channel: SlackChannel, code: str
) -> None:
    slack.revoke(code)
    notification = message(DeliveryKind.RESULT, room)
    ended = failed(await channel.send(notification))
    end = after_attempt(ended, 5, LIMITS)
    assert (end.status, end.spent) == (DeliveryStatus.PENDING, False)
    assert end.delay is not None
    assert end.delay >= 60, "a hot retry"
    assert channel.bucket(notification, ended) == "slack", (
        "the claim leaves the whole channel alone"
    )
    assert channel.trouble is not None
    assert code in channel.trouble
    slack.revoke(None)
    assert isinstance(await channel.send(notification), Receipt)
    assert channel.trouble is None


async def test_missing_scope_pauses_its_method(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    slack.world.scopes.discard("files:write")
    file = message(DeliveryKind.FILE, room, payload={"name": "a"})
    ended = failed(await channel.upload(file, File("a", b"a")))
    assert ended.code == "missing_scope"
    assert after_attempt(ended, 5, LIMITS).status is DeliveryStatus.PENDING
    assert channel.bucket(file, ended) == "slack#files"
    assert "files:write" in (channel.trouble or "")


@pytest.mark.parametrize("code", [*sorted(TARGET), "restricted_action_read_only_channel"])
async def test_missing_target_is_dead_after_one_attempt(
    slack: FakeSlack, room: str, channel: SlackChannel, code: str
) -> None:
    slack.faults.next(POST, error(code))
    ended = failed(await channel.send(message(DeliveryKind.RESULT, room)))
    assert ended.code == TARGET_GONE
    assert code in str(ended)
    assert after_attempt(ended, 1, LIMITS).status is DeliveryStatus.DEAD_LETTER


async def test_rejected_blocks_are_resent_as_plain_text_with_a_file(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    for nth, code in enumerate(sorted(CONTENT), 1):
        slack.faults.next(POST, error(code))
        notification = message(DeliveryKind.NOTICE, room, payload={"text": "word " * 2000})
        assert isinstance(await channel.send(notification), Receipt), code
        assert len(slack.messages(room)) == 2 * nth
        first, second = slack.messages(room)[-2:]
        assert "blocks" not in first
        assert len(first["text"]) <= 3000
        assert ("metadata" in first) is ("metadata" not in code), code
        assert second["files"][0]["name"] == "D-7.txt"
        assert slack.files[-1]["data"].decode().count("word") == 2000


async def test_content_rejected_twice_is_permanent(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    slack.faults.next(POST, error("invalid_blocks"), times=2)
    ended = failed(await channel.send(message(DeliveryKind.RESULT, room)))
    assert classify(ended) is ErrorClass.PERMANENT
    assert slack.messages(room) == []


@pytest.mark.parametrize("code", sorted(UNCONFIRMED))
async def test_server_error_has_an_unknown_outcome(
    slack: FakeSlack, room: str, channel: SlackChannel, code: str
) -> None:
    slack.faults.next(POST, error(code))
    assert isinstance(await channel.send(message(DeliveryKind.RESULT, room)), Unconfirmed)


@pytest.mark.parametrize("fault", [Fault.HTML_503, Fault.HTML_AFTER, Fault.GARBAGE_AFTER])
async def test_html_or_invalid_json_is_reconciled(
    slack: FakeSlack, room: str, channel: SlackChannel, fault: Fault
) -> None:
    slack.faults.next(POST, fault)
    notification = message(DeliveryKind.RESULT, room)
    assert isinstance(await channel.send(notification), Unconfirmed)
    result = await channel.find(notification)
    assert (result is not None) is fault.after


async def test_timeout_has_an_unknown_outcome(slack: FakeSlack, room: str) -> None:
    channel = slack_channel(slack, timeout=0.2)
    slack.faults.next(POST, Fault.SLOW(5))
    assert isinstance(await channel.send(message(DeliveryKind.RESULT, room)), Unconfirmed)


@pytest.mark.parametrize("code", sorted(COPY))
async def test_failed_update_is_reported_as_a_missing_copy(
    slack: FakeSlack, room: str, channel: SlackChannel, code: str
) -> None:
    first = await channel.send(message(DeliveryKind.STATUS, room))
    assert isinstance(first, Receipt)
    slack.faults.next("chat.update", error(code))
    ended = failed(await channel.edit(message(DeliveryKind.STATUS, room, edits=first.ref)))
    assert ended.code == COPY_GONE


async def test_deleted_thread_falls_back_to_the_channel(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    for code in ("thread_not_found", "message_not_found", "cannot_reply_to_message"):
        slack.faults.next(POST, error(code))
        notification = message(DeliveryKind.RESULT, room, root=f"{room}/1700000000.000100")
        assert isinstance(await channel.send(notification), Receipt)
    result = slack.messages(room)
    assert len(result) == 3
    assert all("D-7" in shown(item) and "thread_ts" not in item for item in result)
    again = message(DeliveryKind.RESULT, room, root=f"{room}/1700000000.000100")
    await channel.send(again)
    assert isinstance(await channel.find(again), Receipt), "it is found where it went"


async def test_message_is_sent_again_without_the_scope_to_search(
    slack: FakeSlack, room: str, channel: SlackChannel, caplog: pytest.LogCaptureFixture
) -> None:
    slack.world.scopes -= {"channels:history", "groups:history", "im:history", "mpim:history"}
    assert await channel.find(message(DeliveryKind.RESULT, room)) is None
    assert "missing_scope" in caplog.text


async def test_unknown_error_is_permanent_and_named(
    slack: FakeSlack, room: str, channel: SlackChannel
) -> None:
    slack.faults.next(POST, error("brand_new_error"))
    ended = failed(await channel.send(message(DeliveryKind.RESULT, room)))
    assert classify(ended) is ErrorClass.PERMANENT
    assert "brand_new_error (chat.postMessage)" in str(ended)


@pytest.mark.parametrize(
    ("status", "then"),
    [
        (200, DeliveryStatus.DEAD_LETTER),
        (408, DeliveryStatus.PENDING),
        (400, DeliveryStatus.DEAD_LETTER),
    ],
)
async def test_unlisted_error_is_retried_by_its_http_status(
    slack: FakeSlack, room: str, channel: SlackChannel, status: int, then: DeliveryStatus
) -> None:
    slack.faults.next(POST, error("brand_new_error", status))
    ended = failed(await channel.send(message(DeliveryKind.RESULT, room)))
    assert after_attempt(ended, 1, LIMITS).status is then


async def test_failures_never_contain_the_token(
    slack: FakeSlack, room: str, channel: SlackChannel, caplog: pytest.LogCaptureFixture
) -> None:
    for fault in (Fault.HTML_503, Fault.DROP_AFTER, error("invalid_auth"), Fault.RATE_LIMIT(1)):
        slack.faults.next(POST, fault)
        ended = await channel.send(message(DeliveryKind.RESULT, room))
        assert slack.bot_token not in str(ended)
    assert slack.bot_token not in caplog.text


@cases("code", sorted({*ACCOUNT, *CONTENT, *COPY, *UNCONFIRMED, *TARGET, *UNLISTED}))
def test_error_codes_of_slack_are_not_redacted(code: str) -> None:
    assert redact(f"{code} ({POST})") == f"{code} ({POST})"
