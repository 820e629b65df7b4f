"""The page of the fake Slack: what it shows, and what its forms send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Any

import httpx
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_testing.fake.page import Guide
from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.page.channel_page import LATE, ChannelPage
from tests.support.cases import cases
from tests.support.page_visitor import PageVisitor, part_of, visiting

Json = dict[str, Any]
HOSTILE = "<script>alert(1)</script> \"'&amp;"


class Workspace:
    """A workspace, an app that records what it gets, and the page."""

    def __init__(self, slack: FakeSlack, url: str, room: str) -> None:
        self.slack = slack
        self.url = url
        self.room = room
        self.web = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        self.received: asyncio.Queue[Json] = asyncio.Queue()
        self.answer: Json | None = None
        """The body of the next acknowledgments."""

    async def take(self, client: SocketModeClient, request: SocketModeRequest) -> None:
        self.received.put_nowait(request.payload)
        body = self.answer if request.payload.get("type") == "view_submission" else None
        await client.send_socket_mode_response(SocketModeResponse(request.envelope_id, body))


@asynccontextmanager
async def workspace(*, app: bool = True) -> AsyncIterator[tuple[Workspace, PageVisitor]]:
    """Serve a workspace, with or without a running app, and visit its page as Anna."""
    async with FakeSlack() as slack:
        anna = slack.user("anna")
        room = slack.channel("general", [anna, slack.user("ben")])
        page = ChannelPage(slack, room, Guide(HOSTILE, (HOSTILE,)), "/draftsman help <me>")
        async with page.serving() as url, visiting(url) as visitor:
            served = Workspace(slack, url, room)
            await visitor.become("Anna")
            client = SocketModeClient(app_token=slack.app_token, web_client=served.web)
            client.web_client.base_url = slack.api_url
            client.socket_mode_request_listeners.append(served.take)  # type: ignore[arg-type]
            if app:
                await client.connect()  # type: ignore[no-untyped-call]
            try:
                yield served, visitor
            finally:
                await client.close()  # type: ignore[no-untyped-call]


def button(text: str, action: str, **fields: Any) -> Json:
    words = {"type": "plain_text", "text": text}
    return {"type": "button", "text": words, "action_id": action, "value": "1", **fields}


async def test_nothing_that_people_or_the_app_write_becomes_html() -> None:
    async with workspace() as (served, visitor):
        await visitor.press("Send", text=HOSTILE)
        wire = escape(HOSTILE, quote=False)
        blocks: list[Json] = [
            {"type": "section", "text": {"type": "mrkdwn", "text": f"*{wire}* `{wire}`"}},
            {"type": "actions", "elements": [button(HOSTILE, HOSTILE)]},
        ]
        await served.web.chat_postMessage(channel=served.room, text=HOSTILE, blocks=blocks)
        page = await visitor.page()
        assert [script.get("nonce") is not None for script in page.find_all("script")] == [True]
        assert part_of(page, "main").get_text(" ").count("<script>alert(1)</script>") == 4
        assert "alert(1)" in part_of(page, "header").text


async def test_a_command_a_message_and_a_reply_are_sent_as_a_person_sends_them() -> None:
    async with workspace() as (served, visitor):
        await visitor.press("Send")
        command = await served.received.get()
        assert (command["command"], command["text"]) == ("/draftsman", "help &lt;me&gt;")
        await visitor.press("Send", text="@draftsman fix\r\nit")
        kinds = {(await served.received.get())["event"]["type"] for _ in range(2)}
        assert kinds == {"message", "app_mention"}
        [message] = served.slack.messages(served.room)
        assert message["text"] == f"<@{served.slack.bot_user}> fix\nit"
        await visitor.press("Reply", text="2")
        reply = (await served.received.get())["event"]
        assert (reply["text"], reply["thread_ts"]) == ("2", message["ts"])


async def test_a_command_that_no_app_has_is_refused_and_its_text_stays() -> None:
    async with workspace() as (served, visitor):
        await visitor.press("Send", text="/draftsmna help")
        assert "/draftsmna is not a valid command." in await visitor.text()
        await visitor.become("Ben")
        [draft] = (await visitor.page()).select("textarea#composer")
        assert draft.text == "/draftsman help <me>", "that of Anna is hers"
        await visitor.become("Anna")
        [draft] = (await visitor.page()).select("textarea#composer")
        assert draft.text == "/draftsmna help"
        await visitor.press("Send", text="/draftsman help")
        assert (await served.received.get())["text"] == "help"
        assert "not a valid command" not in await visitor.text()
        await visitor.press("Send", text=" /draftsmna is a typo")
        assert (await served.received.get())["event"]["text"] == "/draftsmna is a typo"
        assert [draft.text for draft in (await visitor.page()).select("textarea#composer")] == [""]


async def test_a_modal_is_filled_in_with_its_errors_and_closed() -> None:
    words = {"type": "plain_text", "text": "Week"}
    view = {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Run"},
        "submit": {"type": "plain_text", "text": "Submit"},
        "blocks": [
            {
                "type": "input",
                "block_id": "week",
                "label": words,
                "element": {"type": "plain_text_input", "action_id": "week"},
            }
        ],
    }
    async with workspace() as (served, visitor):
        actions = {"type": "actions", "elements": [button("Open", "open")]}
        await served.web.chat_postMessage(channel=served.room, text="x", blocks=[actions])
        await visitor.press("Open")
        pressed = await served.received.get()
        assert pressed["actions"][0]["action_id"] == "open"
        await served.web.views_open(trigger_id=pressed["trigger_id"], view=view)
        served.answer = {"response_action": "errors", "errors": {"week": "a number, please"}}
        await visitor.press("Submit", **{"value:week": "x"})
        values = (await served.received.get())["view"]["state"]["values"]
        assert values["week"]["week"]["value"] == "x"
        await visitor.sees("a number, please")
        served.answer = None
        await visitor.press("Submit", **{"value:week": "31"})
        await visitor.sees("Reply")
        assert served.slack.views(next(iter(served.slack.world.stacks))) == []


async def test_a_button_that_is_gone_and_an_app_that_is_away_are_told() -> None:
    async with workspace(app=False) as (served, visitor):
        served.slack.event_delivery.patience = 0.01
        actions = {"type": "actions", "elements": [button("Go", "go")]}
        sent = await served.web.chat_postMessage(channel=served.room, text="x", blocks=[actions])
        await visitor.press("Go")
        assert LATE in await visitor.text()
        async with httpx.AsyncClient(follow_redirects=True) as client:
            form = {"do": "press", "press": "gone", "ts": str(sent["ts"])}
            response = await client.post(served.url, data=form)
        assert "This is no longer there" in response.text


@cases("path", ["/", "/x/", "/x/changes"])
async def test_the_page_is_only_at_its_secret_path(path: str) -> None:
    async with workspace(app=False) as (served, _), httpx.AsyncClient() as client:
        response = await client.get(httpx.URL(served.url).join(path))
        assert response.status_code == 404


async def test_a_browser_gets_changes_once_there_are_some() -> None:
    async with workspace() as (served, visitor), httpx.AsyncClient(timeout=30) as client:
        seen = str(part_of(await visitor.page(), "main")["data-seen"])
        waiting = asyncio.create_task(
            client.get(f"{served.url}changes", params={"as": "", "seen": seen})
        )
        await served.web.chat_postMessage(channel=served.room, text="news")
        response = await waiting
        assert "news" in response.text
        assert response.headers["x-seen"] != seen
