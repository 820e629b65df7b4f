"""The official SDK against the fake."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import ClientSession
from slack_sdk.errors import SlackApiError
from slack_sdk.models.blocks import ButtonElement, SectionBlock
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from draftsman_testing.slack import FakeSlack

MODAL: dict[str, Any] = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "New job"},
    "blocks": [{"type": "divider"}],
}


async def test_a_message_is_posted_changed_and_deleted(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    posted = await client.chat_postMessage(channel=general, text="one")
    await client.chat_update(channel=general, ts=posted["ts"], text="two")
    assert [message["text"] for message in slack.messages(general)] == ["two"]
    await client.chat_delete(channel=general, ts=posted["ts"])
    assert slack.messages(general) == []
    assert [call.outcome for call in slack.calls] == ["ok"] * 3


async def test_blocks_stay_until_they_are_replaced(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    button = ButtonElement(text="Go", action_id="go", value="1")
    posted = await client.chat_postMessage(
        channel=general, text="one", blocks=[SectionBlock(text="Go?", accessory=button)]
    )
    await client.chat_update(channel=general, ts=posted["ts"], text="two")
    assert slack.messages(general)[0]["blocks"][0]["accessory"]["action_id"] == "go"
    await client.chat_update(channel=general, ts=posted["ts"], text="three", blocks=[])
    assert "blocks" not in slack.messages(general)[0]


async def test_a_message_is_found_again_by_its_metadata(
    client: AsyncWebClient, general: str
) -> None:
    metadata = {"event_type": "delivery", "event_payload": {"id": 7}}
    top = await client.chat_postMessage(channel=general, text="top")
    await client.chat_postMessage(
        channel=general, text="one", thread_ts=top["ts"], metadata=metadata
    )
    without_metadata = await client.conversations_replies(channel=general, ts=top["ts"])
    assert [message.get("metadata") for message in without_metadata["messages"]] == [None, None]
    result = await client.conversations_replies(
        channel=general, ts=top["ts"], include_all_metadata=True
    )
    assert result["messages"][1]["metadata"] == metadata


async def test_long_threads_come_in_pages(client: AsyncWebClient, general: str) -> None:
    top = await client.chat_postMessage(channel=general, text="top")
    for number in range(5):
        await client.chat_postMessage(channel=general, text=str(number), thread_ts=top["ts"])
    texts = []
    pages = await client.conversations_replies(channel=general, ts=top["ts"], limit=2)
    async for page in pages:
        texts += [message["text"] for message in page["messages"]]
    assert texts == ["top", "0", "1", "top", "2", "3", "top", "4"]


async def test_history_is_newest_first_and_without_replies(
    client: AsyncWebClient, general: str
) -> None:
    top = await client.chat_postMessage(channel=general, text="top")
    await client.chat_postMessage(channel=general, text="hidden", thread_ts=top["ts"])
    await client.chat_postMessage(
        channel=general, text="broadcast", thread_ts=top["ts"], reply_broadcast=True
    )
    await client.chat_postMessage(channel=general, text="last")
    result = await client.conversations_history(channel=general)
    assert [message["text"] for message in result["messages"]] == ["last", "broadcast", "top"]
    with pytest.raises(SlackApiError, match="invalid_ts_oldest"):
        await client.conversations_history(channel=general, oldest="yesterday")
    later = await client.conversations_history(channel=general, oldest=top["ts"])
    assert [message["text"] for message in later["messages"]] == ["last", "broadcast"]


async def test_files_are_uploaded_into_a_thread(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    posted = await client.chat_postMessage(channel=general, text="one")
    await client.files_upload_v2(
        channel=general,
        thread_ts=posted["ts"],
        initial_comment="both",
        file_uploads=[
            {"filename": "a.patch", "content": "diff"},
            {"filename": "b.bin", "file": b"\x00\xff", "title": "B"},
        ],
    )
    assert [file["data"] for file in slack.files] == [b"diff", b"\x00\xff"]
    message = slack.messages(general, posted["ts"])[0]
    assert [file["title"] for file in message["files"]] == ["a.patch", "B"]
    assert message["text"] == "both"
    about = (await client.files_info(file=slack.files[0]["id"]))["file"]
    assert about["size"] == len(b"diff")
    headers = {"Authorization": f"Bearer {slack.bot_token}"}
    async with ClientSession(headers=headers) as session:
        for file in message["files"]:
            async with session.get(file["url_private_download"], allow_redirects=False) as answer:
                assert answer.status == 200
                assert answer.content_type == file["mimetype"]
        upload = await client.files_getUploadURLExternal(filename="c", length=1)
        unshared = file["url_private"].replace(file["id"], upload["file_id"])
        async with session.get(unshared, allow_redirects=False) as answer:
            assert answer.status == 302


async def test_ephemeral_message_is_visible_to_one_person_and_not_stored(
    slack: FakeSlack, client: AsyncWebClient, general: str, anna: str
) -> None:
    await client.chat_postEphemeral(channel=general, user=anna, text="psst")
    assert [message["text"] for message in slack.ephemerals(general, anna)] == ["psst"]
    assert slack.messages(general) == []


async def test_direct_message_reaches_a_person(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    opened = await client.conversations_open(users=anna)
    await client.chat_postMessage(channel=opened["channel"]["id"], text="one")
    await client.chat_postMessage(channel=anna, text="two")
    assert [message["text"] for message in slack.messages(slack.direct(anna))] == ["one", "two"]


async def test_information_methods_describe_the_app_people_and_channels(
    slack: FakeSlack, client: AsyncWebClient, general: str, anna: str
) -> None:
    user = await client.auth_test()
    assert (user["user_id"], user["team_id"]) == (slack.bot_user, slack.team)
    assert "chat:write" in user.headers["x-oauth-scopes"]
    assert (await client.users_info(user=anna))["user"]["name"] == "anna"
    assert (await client.conversations_info(channel=general))["channel"]["is_member"] is True
    own_channels = await client.users_conversations(types="public_channel,private_channel")
    assert [channel["id"] for channel in own_channels["channels"]] == [general]


async def test_reaction_is_added_and_removed(
    slack: FakeSlack, client: AsyncWebClient, general: str
) -> None:
    posted = await client.chat_postMessage(channel=general, text="one")
    await client.reactions_add(channel=general, timestamp=posted["ts"], name="eyes")
    assert slack.messages(general)[0]["reactions"][0]["users"] == [slack.bot_user]
    await client.reactions_remove(channel=general, timestamp=posted["ts"], name="eyes")
    assert slack.messages(general)[0]["reactions"] == []


async def test_modals_are_opened_changed_and_stacked(
    slack: FakeSlack, client: AsyncWebClient, anna: str
) -> None:
    first = slack.world.trigger(anna)
    opened = await client.views_open(trigger_id=first, view=MODAL)
    renamed = MODAL | {"title": {"type": "plain_text", "text": "Other"}}
    await client.views_update(
        view_id=opened["view"]["id"], hash=opened["view"]["hash"], view=renamed
    )
    inside = slack.world.trigger(anna, opened["view"]["id"])
    await client.views_push(trigger_id=inside, view=MODAL)
    assert [view["title"]["text"] for view in slack.views(anna)] == ["Other", "New job"]


async def test_a_home_tab_is_published(slack: FakeSlack, client: AsyncWebClient, anna: str) -> None:
    view = {"type": "home", "blocks": [{"type": "divider"}]}
    first = await client.views_publish(user_id=anna, view=view)
    second = await client.views_publish(user_id=anna, view=view)
    assert first["view"]["id"] == second["view"]["id"]
    assert slack.home(anna) == second["view"]


async def test_sdk_replies_through_a_response_url(
    slack: FakeSlack, client: AsyncWebClient, general: str, anna: str
) -> None:
    buttons = {"type": "actions", "elements": [_button("go")]}
    posted = await client.chat_postMessage(channel=general, text="one", blocks=[buttons])
    slack.event_delivery.patience = 0
    pressed = await slack.press(anna, general, posted["ts"], "go")
    hook = AsyncWebhookClient(pressed.sent["response_url"])
    assert (await hook.send(text="only you")).body == "ok"
    assert slack.ephemerals(general, anna)[-1]["text"] == "only you"
    await hook.send(text="done", replace_original=True)
    assert [message["text"] for message in slack.messages(general)] == ["done"]
    await hook.send(text="all", response_type="in_channel")
    await hook.send(delete_original=True)
    assert [message["text"] for message in slack.messages(general)] == ["all"]


def _button(action_id: str) -> dict[str, Any]:
    text = {"type": "plain_text", "text": "Go"}
    return {"type": "button", "text": text, "action_id": action_id, "value": "1"}
