"""The fake returns Slack's error codes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.methods.registry import METHODS
from draftsman_testing.slack.world import Hook

MODAL: dict[str, Any] = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "New job"},
    "blocks": [{"type": "divider"}],
}
NONSENSE: dict[str, Any] = {
    "channel": 7, "ts": [], "user": {}, "users": ",,", "blocks": "{", "view": "[", "files": "{}",
    "limit": "x", "cursor": "?", "oldest": "y", "length": -1, "metadata": "7", "thread_ts": {},
    "trigger_id": 1, "timestamp": None, "name": [], "filename": 7, "file": {}, "types": 3,
}  # fmt: skip
META = {"event_type": "delivery", "event_payload": {"id": 1}}


async def refusal(call: Awaitable[Any]) -> dict[str, Any]:
    """Return the error of a call."""
    with pytest.raises(SlackApiError) as caught:
        await call
    data: dict[str, Any] = caught.value.response.data  # type: ignore[union-attr, unused-ignore]
    return data


async def test_tokens_are_checked(slack: FakeSlack, client: AsyncWebClient) -> None:
    for token, error in (
        ("xoxb-other", "invalid_auth"),
        (slack.app_token, "not_allowed_token_type"),
    ):
        other = AsyncWebClient(token, base_url=slack.api_url, retry_handlers=[])
        assert (await refusal(other.auth_test()))["error"] == error
    without_token = AsyncWebClient(base_url=slack.api_url, retry_handlers=[])
    assert (await refusal(without_token.auth_test()))["error"] == "not_authed"
    result = await refusal(client.apps_connections_open(app_token=slack.bot_token))
    assert result["error"] == "not_allowed_token_type"


@pytest.mark.parametrize("error", ["token_revoked", "account_inactive", "token_expired"])
async def test_a_revoked_token_does_nothing(
    slack: FakeSlack, client: AsyncWebClient, general: str, error: str
) -> None:
    slack.revoke(error)
    result = await refusal(client.chat_postMessage(channel=general, text="one"))
    assert result["error"] == error
    assert slack.messages(general) == []
    slack.revoke(None)
    await client.chat_postMessage(channel=general, text="one")


@pytest.mark.parametrize(
    ("scope", "call"),
    [
        ("chat:write", lambda c, channel: c.chat_postMessage(channel=channel, text="one")),
        ("channels:history", lambda c, channel: c.conversations_history(channel=channel)),
        ("channels:read", lambda c, channel: c.conversations_info(channel=channel)),
        ("users:read", lambda c, _: c.users_info(user="U1")),
        ("im:write", lambda c, _: c.conversations_open(users="USLACKBOT")),
        ("files:write", lambda c, _: c.files_getUploadURLExternal(filename="a", length=1)),
        ("reactions:write", lambda c, w: c.reactions_add(channel=w, timestamp="1", name="eyes")),
    ],
)
async def test_missing_scope_is_named_in_the_error(
    slack: FakeSlack,
    client: AsyncWebClient,
    general: str,
    scope: str,
    call: Callable[[AsyncWebClient, str], Awaitable[Any]],
) -> None:
    slack.world.scopes.discard(scope)
    result = await refusal(call(client, general))
    assert result["error"] == "missing_scope"
    assert scope in result["needed"]
    assert scope not in result["provided"].split(",")


async def test_bot_cannot_post_without_membership(slack: FakeSlack, client: AsyncWebClient) -> None:
    errors = {
        "C0NOTHING": "channel_not_found",
        slack.channel("public", bot=False): "not_in_channel",
        slack.channel("secret", private=True, bot=False): "channel_not_found",
        slack.channel("old", archived=True): "is_archived",
    }
    for channel, error in errors.items():
        result = await refusal(client.chat_postMessage(channel=channel, text="one"))
        assert result["error"] == error
    slack.world.scopes.add("chat:write.public")
    await client.chat_postMessage(channel="#public", text="one")


async def test_bot_cannot_read_channels_without_membership(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    public = slack.channel("public", bot=False)
    result = await refusal(client.conversations_replies(channel=public, ts="1.0"))
    assert result["error"] == "not_in_channel"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, "no_text"),
        ({"text": ""}, "no_text"),
        ({"text": "a", "blocks": "nonsense"}, "invalid_blocks_format"),
        ({"text": "a", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"text": "a", "metadata": {"event_type": "delivery"}}, "invalid_metadata_format"),
        ({"text": "a", "metadata": META | {"event_payload": {"a": "b" * 20_000}}},
         "metadata_too_large"),
        ({"attachments": [{"text": "a"}] * 101}, "too_many_attachments"),
    ],
)  # fmt: skip
async def test_invalid_message_is_not_posted(
    slack: FakeSlack, client: AsyncWebClient, general: str, content: dict[str, Any], error: str
) -> None:
    result = await refusal(client.api_call("chat.postMessage", json={"channel": general} | content))
    assert result["error"] == error
    assert slack.messages(general) == []


async def test_bad_blocks_are_explained_as_slack_does(client: AsyncWebClient, general: str) -> None:
    block = {"type": "section", "text": {"type": "mrkdwn", "text": "a" * 3001}}
    call = client.chat_postMessage(channel=general, text="one", blocks=[block])
    problem = "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"
    result = await refusal(call)
    assert result["errors"] == [problem]
    assert result["response_metadata"] == {"messages": [f"[ERROR] {problem}"]}


async def test_long_text_is_truncated_when_posted_and_refused_when_updated(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    posted = await client.chat_postMessage(channel=general, text="a" * 40_001)
    assert len(slack.messages(general)[0]["text"]) == 40_000
    call = client.chat_update(channel=general, ts=posted["ts"], text="a" * 4001)
    assert (await refusal(call))["error"] == "msg_too_long"


async def test_only_its_own_messages_can_be_changed(
    slack: FakeSlack, client: AsyncWebClient, general: str, anna: str
) -> None:
    slack.event_delivery.patience = 0
    ack = await slack.say(anna, general, "mine")
    update = client.chat_update(channel=general, ts=ack.ts, text="yours")
    assert (await refusal(update))["error"] == "cant_update_message"
    delete = client.chat_delete(channel=general, ts=ack.ts)
    assert (await refusal(delete))["error"] == "cant_delete_message"
    missing = client.chat_update(channel=general, ts="1.000000", text="none")
    assert (await refusal(missing))["error"] == "message_not_found"
    thread = client.conversations_replies(channel=general, ts="1.000000")
    assert (await refusal(thread))["error"] == "thread_not_found"


async def test_reply_to_a_deleted_message_is_posted_in_the_channel(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    posted = await client.chat_postMessage(channel=general, text="one")
    await client.chat_delete(channel=general, ts=posted["ts"])
    reply = await client.chat_postMessage(channel=general, text="two", thread_ts=posted["ts"])
    assert "thread_ts" not in reply["message"]
    assert [message["text"] for message in slack.messages(general)] == ["two"]


async def test_a_thread_outlives_its_first_message(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    top = await client.chat_postMessage(channel=general, text="top")
    await client.chat_postMessage(channel=general, text="one", thread_ts=top["ts"])
    await client.chat_delete(channel=general, ts=top["ts"])
    await client.chat_postMessage(channel=general, text="two", thread_ts=top["ts"])
    assert slack.messages(general) == []
    assert [message["text"] for message in slack.messages(general, top["ts"])] == ["one", "two"]
    update = client.chat_update(channel=general, ts=top["ts"], text="back")
    assert (await refusal(update))["error"] == "message_not_found"


async def test_ephemeral_message_requires_a_channel_member(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    other = slack.user("otto")
    call = client.chat_postEphemeral(channel=general, user=other, text="psst")
    assert (await refusal(call))["error"] == "user_not_in_channel"
    unknown = client.users_info(user="U0NOBODY")
    assert (await refusal(unknown))["error"] == "user_not_found"


async def test_a_trigger_opens_one_modal_and_soon(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    late = slack.world.trigger(anna)
    slack.later(3.1)
    result = await refusal(client.views_open(trigger_id=late, view=MODAL))
    assert result["error"] == "expired_trigger_id"
    once = slack.world.trigger(anna)
    await client.views_open(trigger_id=once, view=MODAL)
    result = await refusal(client.views_open(trigger_id=once, view=MODAL))
    assert result["error"] == "exchanged_trigger_id"
    result = await refusal(client.views_open(trigger_id="1.2.3", view=MODAL))
    assert result["error"] == "invalid_trigger_id"


async def test_views_are_refused_for_their_names_and_sizes(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    named = MODAL | {"external_id": "job-1"}
    opened = await client.views_open(trigger_id=slack.world.trigger(anna), view=named)
    twice = client.views_open(trigger_id=slack.world.trigger(anna), view=named)
    assert (await refusal(twice))["error"] == "duplicate_external_id"
    stale = client.views_update(view_id=opened["view"]["id"], hash="1.old", view=MODAL)
    assert (await refusal(stale))["error"] == "hash_conflict"
    missing = client.views_update(view_id="V0", view=MODAL)
    assert (await refusal(missing))["error"] == "not_found"
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "a" * 2999}}
    huge = client.views_update(
        view_id=opened["view"]["id"], view=MODAL | {"blocks": [section] * 99}
    )
    assert (await refusal(huge))["error"] == "view_too_large"


async def test_no_more_than_three_modals_are_stacked(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    top = await client.views_open(trigger_id=slack.world.trigger(anna), view=MODAL)
    for _ in range(2):
        trigger = slack.world.trigger(anna, top["view"]["id"])
        top = await client.views_push(trigger_id=trigger, view=MODAL)
    trigger = slack.world.trigger(anna, top["view"]["id"])
    result = await refusal(client.views_push(trigger_id=trigger, view=MODAL))
    assert result["error"] == "push_limit_reached"


async def test_no_home_tab_without_its_setting(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    slack.world.home_enabled = False
    view = {"type": "home", "blocks": [{"type": "divider"}]}
    assert (await refusal(client.views_publish(user_id=anna, view=view)))["error"] == "not_enabled"


async def test_a_response_url_works_five_times_in_half_an_hour(
    slack: FakeSlack, general: str, anna: str
) -> None:
    hook = AsyncWebhookClient(slack.world.hook(Hook(anna, general, slack.world.now())))
    assert [(await hook.send(text="one")).status_code for _ in range(6)] == [200] * 5 + [404]
    late = AsyncWebhookClient(slack.world.hook(Hook(anna, general, slack.world.now())))
    slack.later(30 * 60 + 1)
    answer = await late.send(text="one")
    assert (answer.status_code, "expired_url" in answer.body) == (404, True)
    bad = AsyncWebhookClient(slack.world.hook(Hook(anna, general, slack.world.now())))
    answer = await bad.send(text="one", blocks=[{"type": "header"}])
    assert (answer.status_code, "invalid_blocks" in answer.body) == (400, True)


async def test_incomplete_upload_is_refused(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    upload = await client.files_getUploadURLExternal(filename="a", length=3)
    early = client.files_completeUploadExternal(files=[{"id": upload["file_id"]}])
    assert (await refusal(early))["error"] == "file_update_failed"
    async with ClientSession() as session:
        for data, status in ((b"ab", 400), (b"abc", 200)):
            async with session.post(upload["upload_url"], data=data) as answer:
                assert answer.status == status
    lost = client.files_completeUploadExternal(files=[{"id": "F0"}])
    assert (await refusal(lost))["error"] == "file_not_found"
    nowhere = client.files_completeUploadExternal(
        files=[{"id": upload["file_id"]}], channel_id="C0NOTHING"
    )
    assert (await refusal(nowhere))["error"] == "channel_not_found"
    assert slack.files == []
    await client.files_completeUploadExternal(files=[{"id": upload["file_id"]}], channel_id=general)


async def test_blocks_are_validated_without_a_message(client: AsyncWebClient) -> None:
    text = {"type": "plain_text", "text": "a"}
    good = [{"type": "section", "text": text}]
    view = {"type": "modal", "title": text, "blocks": good}
    for payload in ({"blocks": good}, {"message": {"blocks": good}}, {"view": view}):
        assert (await client.api_call("blocks.validate", json=payload))["ok"]
    bad = [{"type": "section", "text": {"type": "plain_text", "text": ""}}]
    no_view = {"type": "page", "blocks": bad}
    invalid = {"blocks": bad, "message": {"blocks": bad}, "view": no_view}
    pointers = {}
    for name, value in invalid.items():
        answer = await refusal(client.api_call("blocks.validate", json={name: value}))
        assert answer["error"] == f"invalid_{name}"
        pointers[name] = answer["errors"][0]["pointer"]
        assert answer["errors"][0].keys() - {"constraint"} == {"pointer", "code", "message"}
    assert pointers == {
        "blocks": "/0/text/text", "message": "/blocks/0/text/text", "view": "/type"
    }  # fmt: skip
    assert answer["errors"][0]["constraint"] == {
        "type": "enum", "expected": ["modal", "home"], "got": "page"
    }  # fmt: skip
    assert (await client.api_call("blocks.validate", json={"message": {"text": "a"}}))["ok"]
    both = {"blocks": good, "view": view}
    answer = await refusal(client.api_call("blocks.validate", json=both))
    assert answer["error"] == "invalid_arguments"


@pytest.mark.parametrize("name", sorted(METHODS))
async def test_methods_reject_invalid_arguments_without_failing(
    slack: FakeSlack, general: str, name: str
) -> None:
    method = METHODS[name]
    token = slack.app_token if method.token == "app" else slack.bot_token
    client = AsyncWebClient(token, base_url=slack.api_url, retry_handlers=[])
    bodies = [{}, NONSENSE, NONSENSE | {"channel": general}, NONSENSE | {"channel": [], "view": {}}]
    for text in bodies:
        try:
            answer = await client.api_call(name, json=text)
        except SlackApiError as refused:
            answer = refused.response
        assert answer.status_code == 200
        assert answer["ok"] is True or answer["error"]


async def test_invalid_request_gets_a_json_error(slack: FakeSlack, client: AsyncWebClient) -> None:
    assert (await refusal(client.api_call("chat.shout")))["error"] == "unknown_method"
    headers = {"Authorization": f"Bearer {slack.bot_token}", "Content-Type": "application/json"}
    async with ClientSession(headers=headers) as session:
        for body, error in (("{", "invalid_json"), ("[]", "json_not_object")):
            async with session.post(slack.api_url + "auth.test", data=body) as answer:
                assert (await answer.json())["error"] == error
