"""The HTTP server of the bots: incomplete requests, and the separate health port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from starlette.applications import Starlette

from draftsman.errors import ConfigError
from draftsman_bots.process.http import TimedProtocol, bind, health_application, serve
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.http_app import application
from draftsman_bots.trello.settings import TrelloSettings

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HALF = b"POST /slack/events HTTP/1.1\r\nHost: a\r\nX-"


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[int]:
    """Serve an application; provide its port."""
    server = serve(app, ("127.0.0.1", 0), "slack")
    running = asyncio.create_task(server.run())
    try:
        yield server.port
    finally:
        server.stop.set()
        await running


async def opened(port: int, data: bytes) -> Pair:
    """Open a connection and send these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    return reader, writer


async def closed(pair: Pair) -> bool:
    """Wait until the server closes a connection without a response."""
    async with asyncio.timeout(10):
        try:
            return await pair[0].read(1) == b""
        except ConnectionError:
            return True


async def asked(port: int, path: str) -> int:
    """Return the status of a path."""
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        return reply.status


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HALF,
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
        b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
async def test_incomplete_request_times_out(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedProtocol, "arrival_timeout", 0.2)
    async with served(application(None, "", BotHealth())) as port:
        reader, writer = await opened(port, data)
        async with asyncio.timeout(10):
            try:
                while await reader.read(1000):
                    pass
            except ConnectionError:
                pass
        writer.close()
        assert await asked(port, "/healthz") == 200


async def test_long_request_head_is_refused() -> None:
    async with served(application(None, "", BotHealth())) as port:
        reader, writer = await opened(port, HALF + b"a" * 40_000)
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()


async def test_kept_connection_accepts_another_request() -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
    async with served(application(None, "", BotHealth())) as port:
        reader, writer = await opened(port, request)
        for _ in range(2):
            async with asyncio.timeout(10):
                assert b"200 OK" in await reader.readline()
                await reader.readuntil(b"alive\n")
            writer.write(request)
        writer.close()


async def test_health_may_have_a_port_of_its_own() -> None:
    health = BotHealth()
    async with (
        served(application(None, "", health, details=False)) as public,
        served(health_application(health)) as health_port,
    ):
        paths = ("/healthz", "/metrics", "/readyz")
        assert [await asked(public, path) for path in paths] == [200, 404, 404]
        assert [await asked(health_port, path) for path in paths][:2] == [200, 200]
        assert await asked(health_port, "/readyz") in {200, 503}
        assert await asked(health_port, "/slack/events") == 404


def test_health_address_is_configured_and_named_if_it_is_in_use() -> None:
    env = {"env": "A"}
    slack = SlackSettings.model_validate(
        {"bot_token": env, "app_token": env, "health_listen": "127.0.0.1:9400"}
    )
    assert (slack.address, slack.health_address) == (None, ("127.0.0.1", 9400))
    trello = TrelloSettings.model_validate({"key": env, "token": env, "health_listen": "[::1]:1"})
    assert trello.health_address == ("::1", 1)
    with bind(("127.0.0.1", 0), "slack") as taken:
        address = ("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(ConfigError, match=r"\[slack\] health_listen 127\.0\.0\.1:"):
            bind(address, "slack", "health_listen")
