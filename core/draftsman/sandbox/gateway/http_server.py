"""HTTP server of the gateway, over h11: bounded requests, streamed responses."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
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
    """The body of a request exceeds `MAX_BODY`."""


@asynccontextmanager
async def serve(listener: socket.socket, respond: Respond) -> AsyncIterator[None]:
    """Serve connections of a listening socket until the end of the block."""

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_full: bool
    ) -> None:
        try:
            if not is_full:
                await _serve_connection(reader, writer, respond)
        except h11.ProtocolError:
            pass  # the client is broken
        except DraftsmanError as error:  # the run has lost its lease
            _log.warning("gateway: %s", error)

    async with serve_programs(listener, connected, most=MAX_CONNECTIONS, limit=_READ):
        yield


async def _serve_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, respond: Respond
) -> None:
    connection = h11.Connection(h11.SERVER)
    while True:
        reply = GatewayReply(connection, writer)
        try:
            request = await _read_request(connection, reader, writer)
        except TooLarge:
            text = f"the request has more than {MAX_BODY:,} bytes"
            await reply.send_json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": {"message": text}})
            return
        except h11.RemoteProtocolError as error:
            if connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                text = f"not a valid HTTP request: {error}"
                await reply.send_json(error.error_status_hint, {"error": {"message": text}})
            return
        if request is None:
            return
        await respond(request, reply)
        await reply.end()
        if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
            return
        connection.start_next_cycle()


async def _read_request(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> GatewayRequest | None:
    """Return the next request; None at the end of the connection. Raises TooLarge."""
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                proceed = h11.InformationalResponse(status_code=100, headers=[])
                writer.write(connection.send(proceed) or b"")
            connection.receive_data(await reader.read(_READ))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                raise TooLarge
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            break
        else:  # the connection is closed
            return None
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    target = head.target.decode("latin-1").partition("?")[0]
    return GatewayRequest(head.method.decode("ascii"), target, headers, bytes(body))
