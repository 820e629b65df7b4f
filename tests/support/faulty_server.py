"""A web server that misbehaves on request: raw bytes over asyncio, a response per connection.

The path selects the behavior; `requests` has the received requests. It uses no code of draftsman.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from draftsman_testing.waits import until

TLS = Path(__file__).parent / "tls"
CERTIFICATE = TLS / "service.test.crt"
KEY = TLS / "service.test.key"
MEGABYTE = bytes(1024 * 1024)
Writer = asyncio.StreamWriter


@dataclass(frozen=True)
class Request:
    """A received request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


def head(status: int = 200, reason: str = "OK", **headers: str) -> bytes:
    """Return the head of a response."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} {reason}", *lines, "", ""]).encode()


def answer(body: bytes, status: int = 200, reason: str = "OK", **headers: str) -> bytes:
    """Return a complete response."""
    return head(status, reason, content_length=str(len(body)), **headers) + body


def chunk(data: bytes) -> bytes:
    """Return a chunk of a chunked response."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@dataclass
class FaultyServer:
    """The server. `routes` are responses by path; `go` releases held responses."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    routes: dict[str, bytes | Callable[[Request, Writer], Awaitable[None]]] = field(
        default_factory=dict
    )
    go: asyncio.Event = field(default_factory=asyncio.Event)
    host: str = "127.0.0.1"
    scheme: str = "http"
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, path: str = "/") -> str:
        """Return the URL of a path."""
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    @property
    def place(self) -> str:
        """Return the entry of the configuration that allows it."""
        return f"{self.host}:{self.port}"

    async def asked(self, count: int = 1) -> list[Request]:
        """Return the requests once there are `count`."""

        async def look() -> bool:
            return len(self.requests) >= count

        await until(look, f"{count} request(s)")
        return self.requests

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """Serve a connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = await _read(reader)
            self.requests.append(request)
            await self._answer(request, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()

    async def _answer(self, request: Request, writer: Writer) -> None:
        response = self.routes.get(request.path.partition("?")[0])
        if response is None:
            response = answer(b"not here", 404, "Not Found")
        if isinstance(response, bytes):
            writer.write(response)
            await writer.drain()
        else:
            await response(request, writer)

    async def held(self, request: Request, writer: Writer) -> None:
        """Hold the response until the test releases it."""
        await self.go.wait()
        writer.write(answer(b'{"held": true}', content_type="application/json"))
        await writer.drain()

    def stall(self, data: bytes) -> Callable[[Request, Writer], Awaitable[None]]:
        """Return a behavior: send this, and then nothing more."""

        async def behave(_: Request, writer: Writer) -> None:
            writer.write(data)
            await writer.drain()
            await self.go.wait()

        return behave

    def forever(self, first: bytes, piece: bytes) -> Callable[[Request, Writer], Awaitable[None]]:
        """Return a behavior: send this, and then that repeatedly."""

        async def behave(_: Request, writer: Writer) -> None:
            writer.write(first)
            while not self.go.is_set():
                writer.write(piece)
                await writer.drain()

        return behave

    async def close(self) -> None:
        """Release all connections."""
        self.go.set()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@cache
def bomb(size: int = 40) -> bytes:
    """Return megabytes of zeros, compressed about a thousand to one."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join([*(packer.compress(MEGABYTE) for _ in range(size)), packer.flush()])


@asynccontextmanager
async def web(host: str = "127.0.0.1", *, tls: bool = False) -> AsyncIterator[FaultyServer]:
    """Start a server on a free port of this address."""
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, KEY)
    faulty = FaultyServer(host=host, scheme="https" if tls else "http")
    server = await asyncio.start_server(faulty.serve, host, 0, ssl=context)
    faulty.port = server.sockets[0].getsockname()[1]
    try:
        yield faulty
    finally:
        await faulty.close()
        server.close()


@asynccontextmanager
async def unresponsive_port() -> AsyncIterator[int]:
    """Provide a port that listens and never accepts: connecting hangs once its queue is full.

    Linux drops connections to a full queue, so that the other side retries for minutes.
    """
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(0)
    port = listening.getsockname()[1]
    filling = [socket.socket() for _ in range(3)]
    try:
        for client in filling:
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(("127.0.0.1", port))
        yield port
    finally:
        for client in (*filling, listening):
            client.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = top.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    size = int(headers.get("content-length", "0"))
    body = await reader.readexactly(size) if size else b""
    return Request(method, path, headers, body)
