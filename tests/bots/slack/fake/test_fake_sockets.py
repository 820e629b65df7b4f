"""Sockets are opened, refreshed, dropped and left half-open, and the SDK reconnects."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.bolt_adapters import bolt_app, by_socket
from draftsman_testing.slack.sockets import SOCKETS_MOST
from draftsman_testing.waits import DEADLINE

SOON = 0.05
"""Seconds in which the SDK detects a dead socket."""


async def dial(slack: FakeSlack, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
    client = AsyncWebClient(base_url=slack.api_url, retry_handlers=[])
    opened = await client.apps_connections_open(app_token=slack.app_token)
    return await session.ws_connect(opened["url"])


async def test_sdk_connects_and_disconnects(slack: FakeSlack) -> None:
    async with by_socket(bolt_app(slack), slack):
        assert slack.sockets.count == 1
    await slack.sockets.wait(0)


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_sdk_reconnects_after_a_disconnect_request(slack: FakeSlack, reason: str) -> None:
    async with by_socket(bolt_app(slack), slack):
        await slack.sockets.disconnect(reason)
        await slack.sockets.wait(1, opened=2)


async def test_sdk_reconnects_after_a_dropped_connection(slack: FakeSlack) -> None:
    async with by_socket(bolt_app(slack), slack, SOON):
        slack.sockets.drop()
        await slack.sockets.wait(1, opened=2)


async def test_sdk_reconnects_after_the_server_closes(slack: FakeSlack) -> None:
    async with by_socket(bolt_app(slack), slack, SOON):
        await slack.sockets.close()
        await slack.sockets.wait(1, opened=2)


async def test_the_sdk_notices_a_silent_socket(slack: FakeSlack) -> None:
    async with by_socket(bolt_app(slack), slack, SOON):
        slack.sockets.silence()
        await slack.sockets.wait(1, opened=2)


async def test_silent_socket_delivers_nothing(slack: FakeSlack, general: str, anna: str) -> None:
    slack.event_delivery.patience = 0.05
    async with by_socket(bolt_app(slack), slack):
        slack.sockets.silence()
        assert (await slack.command(anna, general, "help")).status is None
    assert slack.sockets.acks == []


async def test_link_disabled_request_leaves_the_socket_open(slack: FakeSlack) -> None:
    async with aiohttp.ClientSession() as session:
        socket = await dial(slack, session)
        assert (await socket.receive_json())["num_connections"] == 1
        await slack.sockets.disconnect("link_disabled")
        assert (await socket.receive_json())["reason"] == "link_disabled"
        assert (slack.sockets.count, socket.closed) == (1, False)


async def test_eleventh_socket_is_refused(slack: FakeSlack) -> None:
    async with aiohttp.ClientSession() as session:
        sockets = [await dial(slack, session) for _ in range(SOCKETS_MOST)]
        counts = [(await socket.receive_json())["num_connections"] for socket in sockets]
        assert counts == [*range(1, SOCKETS_MOST + 1)]
        message = await (await dial(slack, session)).receive_json()
        assert (message["type"], message["reason"]) == ("disconnect", "too_many_websockets")
        assert slack.sockets.count == SOCKETS_MOST


async def test_an_address_works_once(slack: FakeSlack) -> None:
    client = AsyncWebClient(base_url=slack.api_url, retry_handlers=[])
    opened = await client.apps_connections_open(app_token=slack.app_token)
    async with aiohttp.ClientSession() as session:
        await session.ws_connect(opened["url"])
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(opened["url"])


async def test_deliveries_alternate_between_sockets(
    slack: FakeSlack, general: str, anna: str
) -> None:
    slack.event_delivery.patience = 0.05
    async with aiohttp.ClientSession() as session:
        sockets = [await dial(slack, session) for _ in range(2)]
        for socket in sockets:
            await socket.receive_json()
        for text in ("one", "two"):
            await slack.command(anna, general, text)
        got = [(await socket.receive_json())["payload"]["text"] for socket in sockets]
    assert sorted(got) == ["one", "two"]


async def test_envelope_of_a_dropped_socket_is_redelivered(
    slack: FakeSlack, general: str, anna: str
) -> None:
    app = bolt_app(slack)
    received: list[str] = []

    @app.event("message")
    async def message(body: dict[str, str]) -> None:
        received.append(body["event_id"])
        if len(received) == 1:
            slack.sockets.drop()

    slack.event_delivery.patience = 2 * DEADLINE
    async with by_socket(app, slack, SOON), asyncio.timeout(DEADLINE):
        done = await slack.say(anna, general, "one", retries=1)
    assert (done.acked, done.attempts, len(received), len(set(received))) == (True, 2, 2, 1)
