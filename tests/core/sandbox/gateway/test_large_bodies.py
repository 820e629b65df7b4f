"""Large bodies of one agent: parsed beside the work of others, and a bounded number at once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from draftsman.agent_runs.protocol import codec
from draftsman.agent_runs.protocol.agent_messages import LogMessage
from draftsman.sandbox.gateway import gateway, http_server
from draftsman.sandbox.gateway.allowed_requests import check_request
from draftsman.sandbox.gateway.gateway import MAX_VALUES, SMALL
from draftsman.sandbox.gateway.http_server import GatewayReply, GatewayRequest, serve
from draftsman.sandbox.gateway.metering import Meter
from draftsman.sandbox.sandbox_port import SandboxPort
from draftsman_testing.waits import until
from tests.core.sandbox.gateway.test_gateway import ASK, served, sse
from tests.core.sandbox.gateway.test_gateway import key as key
from tests.core.sandbox.gateway.test_gateway import server as server
from tests.support.faulty_server import FaultyServer, answer


def beside_the_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function behind a wait that ends only if the event loop goes on meanwhile."""
    loop = asyncio.get_running_loop()

    def waiting(*args: Any) -> Any:
        went_on = threading.Event()
        loop.call_soon_threadsafe(went_on.set)
        assert went_on.wait(5), "the event loop stands still"
        return function(*args)

    return waiting


async def test_a_request_is_parsed_and_checked_beside_the_event_loop(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_json_object", beside_the_loop(gateway._json_object))
    monkeypatch.setattr(gateway, "check_request", beside_the_loop(check_request))
    async with served(server) as peer:
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 200


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_response_is_parsed_beside_the_event_loop(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    event = {"type": "message_stop", "usage": {"output_tokens": 7}, "x": "x" * SMALL}
    name = "add_event" if streamed else "add_body"
    monkeypatch.setattr(Meter, name, beside_the_loop(getattr(Meter, name)))
    body = answer(json.dumps(event).encode(), content_type="application/json")
    server.routes["/v1/messages"] = sse(event) if streamed else body
    async with served(server) as peer:
        assert (await peer.client.post("/v1/messages", json=ASK)).status_code == 200
        await asyncio.wait_for(peer.recorded.wait(), 10)
    assert peer.calls[0].usage.output == 7


async def test_a_body_of_too_many_values_is_refused(server: FaultyServer) -> None:
    async with served(server) as peer:
        body = b'{"model": "claude-x", "m": [' + b"[]," * MAX_VALUES + b"0]}"
        response = await peer.client.post("/v1/messages", content=body, timeout=60)
    assert response.status_code == 400
    assert "more than 1,000,000 commas and brackets" in response.json()["error"]["message"]
    assert server.requests == []


def request(size: int) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_a_run_holds_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request waits for the bytes that it announces; one without a length takes the maximum."""
    monkeypatch.setattr(http_server, "MAX_BODIES", 100)
    monkeypatch.setattr(http_server, "MAX_BODY", 80)
    began = asyncio.Queue[int]()
    ends = asyncio.Event()

    async def respond(request: GatewayRequest, reply: GatewayReply) -> None:
        began.put_nowait(len(request.body))
        await ends.wait()
        await reply.send_json(200, {})

    memories: list[http_server.BodyMemory] = []

    class KnownMemory(http_server.BodyMemory):
        def __init__(self) -> None:
            super().__init__()
            memories.append(self)

    monkeypatch.setattr(http_server, "BodyMemory", KnownMemory)
    port = SandboxPort("gateway", None)
    async with serve(await port.listener(), respond):
        writers = []

        async def send(data: bytes) -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", port.port)
            writer.write(data)
            writers.append(writer)

        await send(CHUNKED + b"3\r\nabc\r\n0\r\n\r\n")
        assert await asyncio.wait_for(began.get(), 10) == 3
        await send(request(70))
        assert await asyncio.wait_for(began.get(), 10) == 70, "the rest of 80 was given back"
        await send(request(50))
        await send(request(10))

        async def both_wait() -> bool:
            return len(memories[0]._waiting) == 2

        await until(both_wait, "two requests that wait")
        assert began.empty()
        ends.set()
        assert [await asyncio.wait_for(began.get(), 10) for _ in range(2)] == [50, 10]
        for writer in writers:
            writer.close()
    port.close()


async def test_bytes_of_a_canceled_wait_are_given_to_the_next() -> None:
    memory = http_server.BodyMemory()
    await memory.take(http_server.MAX_BODIES)
    waiting = [asyncio.create_task(memory.take(size)) for size in (10, 20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    memory.give(10)
    await asyncio.sleep(0)
    assert not waiting[1].done()
    memory.give(10)
    await asyncio.wait_for(waiting[1], 10)


async def test_a_body_of_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_PARTS", 50)

    async def respond(_: GatewayRequest, reply: GatewayReply) -> None:
        await reply.send_json(200, {})

    port = SandboxPort("gateway", None)
    async with serve(await port.listener(), respond):
        for count, status in ((50, b"200"), (51, b"413")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
            writer.write(CHUNKED + b"1\r\nx\r\n" * count + b"0\r\n\r\n")
            reply = await asyncio.wait_for(reader.readuntil(b"\r\n"), 10)
            assert reply.split()[1] == status
            writer.close()
    port.close()


async def test_a_long_line_of_an_agent_is_parsed_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = json.dumps({"type": "log", "text": "x" * codec.SHORT}).encode()
    monkeypatch.setattr(codec, "parse_line", beside_the_loop(codec.parse_line))
    message = await codec.parse(long)
    assert isinstance(message, LogMessage)
