"""Bolt against the fake, through Socket Mode and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse

from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.bolt_adapters import bolt_app, by_http, by_socket

Json = dict[str, Any]
FIELD: Json = {
    "type": "input",
    "block_id": "task",
    "label": {"type": "plain_text", "text": "Task"},
    "element": {"type": "plain_text_input", "action_id": "text"},
}
MODAL: Json = {
    "type": "modal",
    "callback_id": "job",
    "title": {"type": "plain_text", "text": "New job"},
    "submit": {"type": "plain_text", "text": "Start"},
    "notify_on_close": True,
    "blocks": [FIELD],
}


def text(message: str) -> Json:
    return {"type": "plain_text", "text": message}


@pytest.fixture(params=["socket", "http"])
async def app(request: pytest.FixtureRequest, slack: FakeSlack) -> AsyncIterator[AsyncApp]:
    """Provide a connected app."""
    created = bolt_app(slack)
    connected = by_socket if request.param == "socket" else by_http
    async with connected(created, slack):
        yield created


async def test_command_reply_is_ephemeral(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    @app.command("/draftsman")
    async def command(ack: Any, body: Json, respond: Any) -> None:
        await ack(f"You said {body['text']}")
        await respond("later", response_type="in_channel")

    answered = await slack.command(anna, general, "fix the parser")
    assert answered.acked
    assert answered.seconds < slack.event_delivery.patience
    messages = [message["text"] for message in slack.ephemerals(general, anna)]
    assert messages == ["You said fix the parser"]
    assert [message["text"] for message in slack.messages(general)] == ["later"]


async def test_mention_is_delivered_twice_and_answered_in_its_thread(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    received: list[str] = []

    @app.event("app_mention")
    async def mentioned(event: Json, say: Any) -> None:
        received.append(f"{event['type']} {event['ts']}")
        await say("On it", thread_ts=event["ts"])

    @app.event("message")
    async def message(event: Json) -> None:
        received.append(f"{event['type']} {event['ts']}")

    done = await slack.mention(anna, general, "fix it")
    assert sorted(received) == [f"app_mention {done.ts}", f"message {done.ts}"]
    assert [message["text"] for message in slack.messages(general, done.ts)] == ["On it"]
    await slack.echo(general, slack.messages(general, done.ts)[0]["ts"])
    assert len(received) == 2


async def test_a_button_changes_its_message(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    @app.action("approve")
    async def approve(ack: Any, body: Json, client: Any) -> None:
        await ack()
        channel = body["channel"]["id"]
        ts = body["message"]["ts"]
        value = body["actions"][0]["value"]
        await client.chat_update(channel=channel, ts=ts, text=f"approved {value}", blocks=[])

    button = {"type": "button", "text": text("Approve"), "action_id": "approve", "value": "q:1"}
    asked = await app.client.chat_postMessage(
        channel=general, text="May I?", blocks=[{"type": "actions", "elements": [button]}]
    )
    assert (await slack.press(anna, general, asked["ts"], "Approve")).acked
    assert [message["text"] for message in slack.messages(general)] == ["approved q:1"]
    with pytest.raises(LookupError, match="no control 'Approve'"):
        await slack.press(anna, general, asked["ts"], "Approve")


async def test_option_is_searched_and_selected(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    selected: list[str] = []

    @app.options("repo")
    async def repos(ack: Any, payload: Json) -> None:
        names = [name for name in ("alpha", "beta") if payload["value"] in name]
        await ack(options=[{"text": text(name), "value": name} for name in names])

    @app.action("repo")
    async def repo(ack: Any, payload: Json) -> None:
        await ack()
        selected.append(payload["selected_option"]["value"])

    select = {"type": "external_select", "action_id": "repo", "placeholder": text("Repository")}
    asked = await app.client.chat_postMessage(
        channel=general, text="Which?", blocks=[{"type": "actions", "elements": [select]}]
    )
    offered = await slack.suggest(anna, general, asked["ts"], "repo", "be")
    assert [option["value"] for option in offered] == ["beta"]
    await slack.choose(anna, general, asked["ts"], "repo", offered[0]["value"])
    assert selected == ["beta"]
    view = MODAL | {"blocks": [FIELD | {"element": select}]}
    opened = await app.client.views_open(trigger_id=slack.world.trigger(anna), view=view)
    offered = await slack.suggest_in_view(anna, opened["view"]["id"], "repo", "a")
    assert [option["value"] for option in offered] == ["alpha", "beta"]


async def test_a_modal_is_opened_refused_and_accepted(
    slack: FakeSlack, app: AsyncApp, anna: str
) -> None:
    @app.shortcut("new")
    async def shortcut(ack: Any, body: Json, client: Any) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=MODAL)

    @app.view("job")
    async def submitted(ack: Any, view: Json) -> None:
        task = view["state"]["values"]["task"]["text"]["value"]
        if not task:
            await ack(response_action="errors", errors={"task": "Say what to do"})
        else:
            await ack()

    assert (await slack.shortcut(anna, "new")).acked
    [opened] = slack.views(anna)
    await slack.submit(anna, opened["id"])
    assert slack.views(anna)[0]["errors"] == {"task": "Say what to do"}
    await slack.submit(anna, opened["id"], {"task": "fix it"})
    assert slack.views(anna) == []
    assert slack.complaints == []


async def test_a_modal_is_closed(slack: FakeSlack, app: AsyncApp, anna: str) -> None:
    closed: list[str] = []

    @app.view_closed("job")
    async def close(ack: Any, view: Json) -> None:
        await ack()
        closed.append(view["id"])

    opened = await app.client.views_open(trigger_id=slack.world.trigger(anna), view=MODAL)
    await slack.close_view(anna, opened["view"]["id"])
    assert closed == [opened["view"]["id"]]
    assert slack.views(anna) == []


async def test_a_submission_may_change_or_stack_modals(
    slack: FakeSlack, app: AsyncApp, anna: str
) -> None:
    message: list[str] = ["push", "update", "clear"]

    @app.view("job")
    async def submitted(ack: Any) -> None:
        action = message.pop(0)
        view = MODAL | {"title": text(action)}
        await ack(response_action=action, **({} if action == "clear" else {"view": view}))

    opened = await app.client.views_open(trigger_id=slack.world.trigger(anna), view=MODAL)
    await slack.submit(anna, opened["view"]["id"], {"task": "a"})
    assert [view["title"]["text"] for view in slack.views(anna)] == ["New job", "push"]
    await slack.submit(anna, slack.views(anna)[-1]["id"], {"task": "a"})
    assert [view["title"]["text"] for view in slack.views(anna)] == ["New job", "update"]
    await slack.submit(anna, slack.views(anna)[-1]["id"], {"task": "a"})
    assert slack.views(anna) == []


async def test_a_home_tab_and_its_button(slack: FakeSlack, app: AsyncApp, anna: str) -> None:
    pressed: list[str] = []

    @app.event("app_home_opened")
    async def home(event: Json, client: Any) -> None:
        button = {"type": "button", "text": text("Go"), "action_id": "go"}
        blocks = [{"type": "actions", "elements": [button]}]
        await client.views_publish(user_id=event["user"], view={"type": "home", "blocks": blocks})

    @app.action("go")
    async def go(ack: Any, body: Json) -> None:
        await ack()
        pressed.append(body["container"]["type"])

    await slack.open_home(anna)
    shown = slack.home(anna)
    assert shown is not None
    await slack.press_in_view(anna, shown["id"], "go")
    assert pressed == ["view"]


async def test_a_message_shortcut_carries_the_message(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    @app.shortcut("from_message")
    async def shortcut(ack: Any, body: Json, respond: Any) -> None:
        await ack()
        await respond(f"From {body['message']['text']}")

    reply = await app.client.chat_postMessage(channel=general, text="broken")
    assert (await slack.message_shortcut(anna, general, reply["ts"], "from_message")).acked
    assert [message["text"] for message in slack.ephemerals(general, anna)] == ["From broken"]


async def test_invalid_responses_of_the_app_are_recorded(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    @app.command("/draftsman")
    async def command(ack: Any) -> None:
        await ack(text="a", blocks=[{"type": "header"}])

    @app.view("job")
    async def submitted(ack: Any) -> None:
        await ack(response_action="errors", errors={"nowhere": "wrong"})

    await slack.command(anna, general, "help")
    opened = await app.client.views_open(trigger_id=slack.world.trigger(anna), view=MODAL)
    await slack.submit(anna, opened["view"]["id"], {"task": "a"})
    assert [message.split()[0] for message in slack.complaints] == [
        "invalid_blocks",
        "invalid_errors",
    ]
    assert slack.ephemerals(general, anna) == []


async def test_edits_deletions_and_previews_are_delivered(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    received: list[tuple[str, bool]] = []

    @app.event("message")
    async def message(event: Json) -> None:
        received.append((event.get("subtype", "new"), "edited" in event.get("message", {})))

    ack = await slack.say(anna, general, "one")
    await slack.unfurl(general, ack.ts)
    await slack.edit(general, ack.ts, "two")
    await slack.delete(general, ack.ts)
    assert received == [
        ("new", False),
        ("message_changed", False),
        ("message_changed", True),
        ("message_deleted", False),
    ]


async def test_unsubscribed_event_is_not_sent(
    slack: FakeSlack, app: AsyncApp, general: str, anna: str
) -> None:
    @app.middleware
    async def anything() -> BoltResponse:
        return BoltResponse(status=200)

    slack.subscribed -= {"message.channels"}
    assert (await slack.say(anna, general, "one")).copies == ()
    outside = slack.channel("outside", [anna], bot=False)
    assert (await slack.mention(anna, outside, "one")).copies == ()
    assert len((await slack.mention(anna, general, "one")).copies) == 1
    direct = await slack.say(anna, slack.direct(anna), f"<@{slack.bot_user}> one")
    assert [copy.sent["event"]["channel_type"] for copy in direct.copies] == ["im"]
