"""A small real HTTP server in this process, whose responses the test defines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """A received request; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A response."""

    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


Answer = Callable[[Request], Awaitable[Reply | None]]
"""None closes the connection without a response."""


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """Serve; yield the base URL."""
    busy: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                request = await _read(reader)
                if (reply := await answer(request)) is not None:
                    writer.write(_bytes(reply))
                    await writer.drain()
        finally:
            busy.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=2**20)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(busy):
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


def _bytes(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} Said"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    lines += [f"content-length: {len(reply.body)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + reply.body
