"""The HTTP server of the bots: incomplete requests, and the separate health port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from draftsman.errors import ConfigError
from draftsman_bots.process import http
from draftsman_bots.process.http import bind, health_application, serve
from draftsman_bots.process.http_protocols import PROTOCOLS, TimedProtocol
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.settings import SlackSettings
from draftsman_bots.slack.transport.http_app import application
from draftsman_bots.trello.settings import TrelloSettings

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"POST /slack/events HTTP/1.1\r\nHost: a\r\nX-"


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: protocol.__name__)
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve with each parser that is installed."""
    monkeypatch.setattr(http, "PROTOCOLS", [request.param])


each_parser = pytest.mark.usefixtures("_parser")


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


def test_parser_in_c_is_used_where_it_is_installed() -> None:
    assert [protocol.__name__ for protocol in PROTOCOLS] == [
        "H11TimedProtocol",
        "HttptoolsTimedProtocol",
    ]


@each_parser
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        GET + HALF,
        b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: a",
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
            await _all_of(reader)
        writer.close()
        assert await asked(port, "/healthz") == 200


@each_parser
@pytest.mark.parametrize("first", [b"", GET])
async def test_long_request_head_is_refused(first: bytes) -> None:
    async with served(application(None, "", BotHealth())) as port:
        reader, writer = await opened(port, first)
        if first:
            await reader.readuntil(b"alive\n")
        await _trickle(writer, HALF, b"a" * 40_000)
        async with asyncio.timeout(10):
            assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        writer.close()


@each_parser
async def test_endless_trailer_is_refused() -> None:
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with served(_reader_of_bodies([])) as port:
        reader, writer = await opened(port, b"")
        await _trickle(writer, head, b"0\r\nA: ", b"a" * 40_000)
        async with asyncio.timeout(10):
            assert b"HTTP/1.1 400" in await _all_of(reader)
        writer.close()


@each_parser
async def test_body_of_small_chunks_is_read() -> None:
    """Its framing is larger than a head may be."""
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    sizes: list[int] = []
    async with served(_reader_of_bodies(sizes)) as port:
        reader, writer = await opened(port, b"")
        await _trickle(writer, head, *[b"1\r\na\r\n" * 10_000] * 2, b"0\r\n\r\n")
        async with asyncio.timeout(10):
            assert b"200 OK" in await reader.readline()
        writer.close()
    assert sizes == [20_000]


@each_parser
@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_invalid_request_ends_its_connection(data: bytes) -> None:
    async with served(application(None, "", BotHealth())) as port:
        reader, writer = await opened(port, data)
        async with asyncio.timeout(5):
            reply = await _all_of(reader)
        assert b" 200 " not in reply
        writer.close()
        assert await asked(port, "/healthz") == 200


def _reader_of_bodies(sizes: list[int]) -> Starlette:
    """Return an application that reads each body, and notes its size."""

    async def read(request: Request) -> Response:
        sizes.append(len(await request.body()))
        return Response()

    return Starlette(routes=[Route("/x", read, methods=["POST"])])


async def _trickle(writer: asyncio.StreamWriter, *parts: bytes) -> None:
    """Send the parts of a request, each by itself."""
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0)


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    """Return what the server sends until it closes the connection."""
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(1000):
            received += part
    return bytes(received)


@each_parser
async def test_kept_connection_accepts_another_request() -> None:
    async with served(application(None, "", BotHealth())) as port:
        reader, writer = await opened(port, GET)
        for _ in range(2):
            async with asyncio.timeout(10):
                assert b"200 OK" in await reader.readline()
                await reader.readuntil(b"alive\n")
            writer.write(GET)
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
