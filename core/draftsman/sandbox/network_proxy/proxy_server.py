"""HTTP proxy for the programs of a run: CONNECT, and requests of http URLs.

head of a request -> allowed host, port and address -> connection -> bytes in both directions
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from draftsman.errors import Failure
from draftsman.sandbox.network_proxy.connector import HostConnector, HostRefused, Streams
from draftsman.sandbox.program_connections import serve_programs
from draftsman.settings.network import HostRule

MAX_CONNECTIONS: Final = 100
"""Concurrent connections of a program; further connections get the status 503."""
MAX_HEAD: Final = 32 * 1024
"""Maximum bytes of the head of a request."""
HEAD_TIMEOUT: Final = 10.0
"""Seconds for the head of a request to arrive."""
CHUNK: Final = 64 * 1024
MAX_LINES: Final = 20
"""Maximum lines about refused hosts, and about used hosts."""
REQUEST: Final = re.compile(rb"([A-Z]{1,20}) (\S{1,8192}) HTTP/1\.[01]\Z")
HOP_HEADERS: Final = (b"connection:", b"host:", b"keep-alive:", b"proxy-", b"upgrade:")
"""Start of headers that are not forwarded with an http URL; the host is that of the URL."""
FIELD: Final = re.compile(rb"[^\s:]+:[^\r\n\0]*\Z")
ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass(slots=True)
class HostUse:
    """The use of a host: connections, and bytes in both directions."""

    connections: int = 0
    sent: int = 0
    received: int = 0


class NetworkProxy:
    """The proxy of a program. `report` gets lines for the log of its run."""

    def __init__(
        self, connector: HostConnector, idle_timeout: float, report: Callable[[str], None]
    ) -> None:
        self._connector = connector
        self._idle = idle_timeout
        self._report = report
        self.usage: dict[str, HostUse] = {}
        """By `host:port`."""
        self._reported: set[str] = set()

    @asynccontextmanager
    async def serve(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve connections of a listening socket until the end of the block."""

        async def connected(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_full: bool
        ) -> None:
            if is_full:
                text = f"{MAX_CONNECTIONS} connections are open; close one of them"
                await _send_error(writer, "503 Service Unavailable", text)
            else:
                await self._serve_connection(reader, writer)

        async with serve_programs(listener, connected, most=MAX_CONNECTIONS, limit=MAX_HEAD):
            yield

    def report_use(self) -> None:
        """Report the bytes of each host."""
        for target, use in list(self.usage.items())[:MAX_LINES]:
            self._report(
                f"{target}: {use.connections} connections, {use.sent:,} bytes sent,"
                f" {use.received:,} received"
            )
        if (omitted := len(self.usage) - MAX_LINES) > 0:
            self._report(f"and {omitted} other hosts")

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(HEAD_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
            target, forwarded = _parse(head)
        except TimeoutError:
            return await _send_error(writer, "408 Request Timeout", "the request did not arrive")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            text = f"the head of the request has more than {MAX_HEAD:,} bytes"
            return await _send_error(writer, "431 Request Header Fields Too Large", text)
        except ValueError as error:
            return await _send_error(writer, "400 Bad Request", str(error))
        try:
            upstream = await self._connector.connect(target)
        except HostRefused as error:
            self._report_once(str(target), f"refused: {error}")
            return await _send_error(writer, "403 Forbidden", str(error))
        except Failure as error:
            self._report_once(str(target), str(error))
            return await _send_error(writer, "502 Bad Gateway", str(error))
        try:
            await self._relay(str(target), (reader, writer), upstream, forwarded)
        finally:
            upstream[1].transport.abort()

    async def _relay(
        self, target: str, client: Streams, upstream: Streams, forwarded: bytes | None
    ) -> None:
        """Copy bytes until the host ends, or until there are none for the idle timeout.

        A client that ends its direction still gets the response.
        """
        use = self.usage.setdefault(target, HostUse())
        use.connections += 1
        if forwarded is None:
            client[1].write(ESTABLISHED)
        else:
            upstream[1].write(forwarded)
            use.sent += len(forwarded)

        def sent(size: int) -> None:
            use.sent += size

        def received(size: int) -> None:
            use.received += size

        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._idle) as idle:

                def active() -> None:
                    idle.reschedule(loop.time() + self._idle)

                async def upload() -> None:
                    try:
                        await _copy(client[0], upstream[1], sent, active)
                    except OSError:  # the client is gone
                        upstream[1].transport.abort()

                upward = asyncio.create_task(upload())
                try:
                    await _copy(upstream[0], client[1], received, active)
                finally:
                    upward.cancel()
                    await asyncio.gather(upward, return_exceptions=True)
        except TimeoutError:
            self._report_once(target, f"{target}: no byte for {self._idle:g} s (idle limit)")

    def _report_once(self, target: str, line: str) -> None:
        """Report the first problem of a host, of a limited number of hosts."""
        if target in self._reported or len(self._reported) > MAX_LINES:
            return
        self._reported.add(target)
        if len(self._reported) > MAX_LINES:
            line = "further problems are not shown"
        self._report(line)


async def _copy(
    source: asyncio.StreamReader,
    destination: asyncio.StreamWriter,
    count: Callable[[int], None],
    active: Callable[[], None],
) -> None:
    """Copy until the source ends, and end the destination."""
    while data := await source.read(CHUNK):
        active()
        count(len(data))
        destination.write(data)
        await destination.drain()
    if destination.can_write_eof():
        destination.write_eof()


def _parse(head: bytes) -> tuple[HostRule, bytes | None]:
    """Return the host, and the head to forward to it; None for CONNECT. Raises ValueError."""
    line, _, fields = head.partition(b"\r\n")
    match = REQUEST.match(line)
    if match is None:
        raise ValueError("not a request of an HTTP proxy")
    method = match[1]
    target = match[2].decode("ascii", "replace")
    if method == b"CONNECT":
        return _host(target), None
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname or "@" in url.netloc:
        raise ValueError("use CONNECT, or a URL with http:// and without a user")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    rule = _host(f"{host}:{80 if url.port is None else url.port}")
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    sent = [field for field in fields.split(b"\r\n") if field]
    if not all(map(FIELD.match, sent)):
        raise ValueError("a header is not of the form name: value, on one line")
    forwarded = [field for field in sent if not field.lower().startswith(HOP_HEADERS)]
    first = b"%s %s HTTP/1.1\r\nHost: %s" % (method, path.encode(), url.netloc.encode())
    return rule, b"\r\n".join([first, *forwarded, b"Connection: close", b"", b""])


def _host(authority: str) -> HostRule:
    if not re.search(r":\d+\Z", authority):
        raise ValueError(f"{authority[:300]!r} has no port")
    rule = HostRule.parse(authority)
    if rule.subdomains:
        raise ValueError(f"{authority[:300]!r} is not a host")
    return rule


async def _send_error(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    body = f"draftsman: {text}\n".encode()
    fields = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    writer.write(f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + body)
    await writer.drain()
