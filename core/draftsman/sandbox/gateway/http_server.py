"""HTTP server of the gateway, over h11: bounded requests, streamed responses."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import h11

from draftsman.errors import DraftsmanError
from draftsman.sandbox.program_connections import serve_programs

MAX_BODY: Final = 32 * 1024 * 1024
"""Maximum bytes of a request, as of Anthropic's Messages API."""
MAX_BODIES: Final = 4 * MAX_BODY
"""Maximum bytes of the requests of a run that are read and answered at once; others wait."""
MAX_PARTS: Final = 100_000
"""Maximum parts of a body: a part of a byte needs as much work as a large one."""
MAX_CONNECTIONS: Final = 64
"""Concurrent connections; further connections are closed."""
_log = logging.getLogger(__name__)
_READ: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A complete request; the names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class GatewayReply:
    """The response to a request: `start`, any number of `write`; or `send_json`."""

    def __init__(self, connection: h11.Connection, writer: asyncio.StreamWriter) -> None:
        self._connection = connection
        self._writer = writer
        self.started = False

    async def start(self, status: int, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the status and the headers."""
        self.started = True
        fields = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
        await self._send(h11.Response(status_code=status, headers=fields))

    async def write(self, data: bytes) -> None:
        """Send a part of the body."""
        if data:
            await self._send(h11.Data(data=data))

    async def send_json(
        self, status: int, body: Any, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Send a complete response."""
        data = json.dumps(body).encode()
        length = ("content-length", str(len(data)))
        await self.start(status, (("content-type", "application/json"), length, *headers))
        await self.write(data)

    async def end(self) -> None:
        """Complete the response."""
        await self._send(h11.EndOfMessage())

    async def _send(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        if (data := self._connection.send(event)) is not None:
            self._writer.write(data)
            await self._writer.drain()


Respond = Callable[[GatewayRequest, GatewayReply], Awaitable[None]]


class TooLarge(Exception):
    """The body of a request exceeds `MAX_BODY` or `MAX_PARTS`."""


class BodyMemory:
    """The bytes of the requests that are held at once: each takes its own before it is read."""

    def __init__(self) -> None:
        self._free = MAX_BODIES
        self._waiting = deque[tuple[int, asyncio.Future[None]]]()

    async def take(self, size: int) -> None:
        """Wait for so many bytes, after those who came before."""
        granted = asyncio.get_running_loop().create_future()
        self._waiting.append((size, granted))
        self.give(0)
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self.give(size)
            raise

    def give(self, size: int) -> None:
        """Give bytes back."""
        self._free += size
        while self._waiting and self._waiting[0][0] <= self._free:
            wanted, granted = self._waiting.popleft()
            if not granted.cancelled():
                self._free -= wanted
                granted.set_result(None)


@asynccontextmanager
async def serve(listener: socket.socket, respond: Respond) -> AsyncIterator[None]:
    """Serve connections of a listening socket until the end of the block."""
    memory = BodyMemory()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_full: bool
    ) -> None:
        try:
            if not is_full:
                await _serve_connection(reader, writer, respond, memory)
        except h11.ProtocolError:
            pass  # the client is broken
        except DraftsmanError as error:  # the run has lost its lease
            _log.warning("gateway: %s", error)

    async with serve_programs(listener, connected, most=MAX_CONNECTIONS, limit=_READ):
        yield


async def _serve_connection(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    respond: Respond,
    memory: BodyMemory,
) -> None:
    connection = h11.Connection(h11.SERVER)
    while True:
        reply = GatewayReply(connection, writer)
        try:
            head = await _next_event(connection, reader, writer)
            if not isinstance(head, h11.Request):
                return  # the connection is closed
            held = _size(head)
            await memory.take(held)
            try:
                body = await _read_body(connection, reader, writer)
                if body is None:
                    return
                memory.give(held - len(body))
                held = len(body)
                await respond(_request(head, body), reply)
            finally:
                memory.give(held)
        except TooLarge:
            text = f"the request has more than {MAX_BODY:,} bytes, or {MAX_PARTS:,} parts"
            await reply.send_json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": {"message": text}})
            return
        except h11.RemoteProtocolError as error:
            if connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                text = f"not a valid HTTP request: {error}"
                await reply.send_json(error.error_status_hint, {"error": {"message": text}})
            return
        await reply.end()
        if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
            return
        connection.start_next_cycle()


def _size(head: h11.Request) -> int:
    """Return the bytes of a body, at most; 0 for a request without any."""
    headers = dict(head.headers)
    if b"transfer-encoding" in headers:
        return MAX_BODY
    return min(int(headers.get(b"content-length", 0)), MAX_BODY)


async def _read_body(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes | None:
    """Return the body of a request; None at the end of the connection. Raises TooLarge."""
    body = bytearray()
    parts = 0
    while True:
        event = await _next_event(connection, reader, writer)
        if isinstance(event, h11.Data):
            body += event.data
            parts += 1
            if len(body) > MAX_BODY or parts > MAX_PARTS:
                raise TooLarge
        elif isinstance(event, h11.EndOfMessage):
            return bytes(body)
        else:
            return None


async def _next_event(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Any:
    """Return the next event of a connection, whose bytes are read one piece at a time."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        if connection.they_are_waiting_for_100_continue:
            proceed = h11.InformationalResponse(status_code=100, headers=[])
            writer.write(connection.send(proceed) or b"")
        connection.receive_data(await reader.read(_READ))
        await asyncio.sleep(0)  # buffered bytes are read without a wait
    return event


def _request(head: h11.Request, body: bytes) -> GatewayRequest:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    target = head.target.decode("latin-1").partition("?")[0]
    return GatewayRequest(head.method.decode("ascii"), target, headers, body)
