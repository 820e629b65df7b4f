"""The HTTP server of the gateway: connections that their programs do not read."""

from __future__ import annotations

import asyncio

import pytest

from draftsman.sandbox import program_connections
from draftsman.sandbox.gateway import http_server
from draftsman.sandbox.gateway.http_server import GatewayReply, GatewayRequest, serve
from draftsman.sandbox.sandbox_port import SandboxPort
from draftsman_testing.waits import until

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def fill(_: GatewayRequest, reply: GatewayReply) -> None:
    """Write until the program reads too little."""
    await reply.start(200)
    while not reply._writer.transport.get_write_buffer_size():
        await reply.write(b"x" * 4096)


@pytest.mark.parametrize(("limit", "served"), [(10.0, False), (0.05, True)])
async def test_a_program_that_reads_nothing_holds_no_connection(
    monkeypatch: pytest.MonkeyPatch, limit: float, served: bool
) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(program_connections, "CLOSE_TIMEOUT", limit)
    port = SandboxPort("gateway", None)
    filled = asyncio.Event()

    async def respond(request: GatewayRequest, reply: GatewayReply) -> None:
        await fill(request, reply)
        filled.set()

    async with serve(await port.listener(), respond):
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(REQUEST)
        await asyncio.wait_for(filled.wait(), 10)

        async def answered() -> bool:
            second, sender = await asyncio.open_connection("127.0.0.1", port.port)
            sender.write(REQUEST)
            try:
                return bool(await second.read(1)) is served
            except ConnectionError:
                return not served
            finally:
                sender.transport.abort()

        if served:
            await until(answered, "a reply")
        else:
            assert [await answered() for _ in range(5)] == [True] * 5, "it counts"
        writer.transport.abort()
    port.close()
