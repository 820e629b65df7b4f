"""The network proxy over real connections: allowed hosts, refusals, limits and broken peers."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from draftsman.outbound.egress_policy import IpAddress
from draftsman.sandbox import program_connections
from draftsman.sandbox.network_proxy import proxy_server
from draftsman.sandbox.network_proxy.connector import HostConnector
from draftsman.sandbox.network_proxy.proxy_server import NetworkProxy
from draftsman.sandbox.sandbox_port import SandboxPort
from draftsman.settings.http import HttpSettings
from draftsman_testing.waits import until
from tests.attacks.catalog import attack
from tests.support.faulty_server import FaultyServer, answer, web

DEADLINE = 10.0
SETTING = "network of [agents.test]"


@dataclass
class Client:
    """A proxy on this host, and the lines that it reported; `resolved` are the looked-up names."""

    port: int
    proxy: NetworkProxy
    lines: list[str] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)

    async def open(self, head: str) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """Send the head of a request; return the head of the response and the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(head.encode() + b"\r\n\r\n")
        async with asyncio.timeout(DEADLINE):
            return await reader.readuntil(b"\r\n\r\n"), reader, writer

    async def status(self, head: str) -> int:
        """Return the status of a request."""
        response, _, writer = await self.open(head)
        writer.close()
        return int(response.split()[1])

    async def get(self, target: str, path: str = "/") -> bytes:
        """Return a response through a tunnel to a host."""
        head, reader, writer = await self.open(f"CONNECT {target} HTTP/1.1\r\nHost: {target}")
        assert head.startswith(b"HTTP/1.1 200"), head
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        writer.write_eof()
        async with asyncio.timeout(DEADLINE):
            response = await reader.read()
        writer.close()
        return response


@asynccontextmanager
async def served(
    *hosts: str, idle: float = DEADLINE, names: dict[str, str] | None = None, **http: Any
) -> AsyncIterator[Client]:
    """Serve a proxy; `names` are the addresses of names."""
    addresses: dict[str, IpAddress] = {
        name: ipaddress.ip_address(address) for name, address in (names or {}).items()
    }
    lines: list[str] = []
    resolved: list[str] = []

    async def resolve(host: str, _: int) -> list[IpAddress]:
        resolved.append(host)
        return [addresses[host]]

    settings = HttpSettings.model_validate(http)
    connector = HostConnector(hosts, settings, DEADLINE, SETTING, resolve)
    proxy = NetworkProxy(connector, idle, lines.append)
    port = SandboxPort("network proxy", None)
    async with proxy.serve(await port.listener()):
        yield Client(port.port, proxy, lines, resolved)
    port.close()


@pytest.fixture
async def server() -> AsyncIterator[FaultyServer]:
    async with web() as server:
        server.routes["/"] = answer(b"hello")
        yield server


async def test_an_allowed_host_is_reached_by_tunnels_and_by_http_urls(
    server: FaultyServer,
) -> None:
    target = f"mirror.test:{server.port}"
    names = {"mirror.test": "127.0.0.1"}
    async with served(target, names=names, allow=["mirror.test"]) as client:
        assert (await client.get(target)).endswith(b"hello")
        head, reader, writer = await client.open(
            f"GET http://mirror.test:{server.port}/?q=1 HTTP/1.1\r\nHost: other.test"
            "\r\nProxy-Authorization: Basic eDp5\r\nConnection: keep-alive\r\nAccept: */*"
        )
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert await reader.read() == b"hello"
        writer.close()
        use = client.proxy.usage[target]
        assert (use.connections, use.sent > 100, use.received > 80) == (2, True, True)
        client.proxy.report_use()
        assert client.lines == [
            f"{target}: 2 connections, {use.sent} bytes sent, {use.received} received"
        ]
    assert client.resolved == ["mirror.test"] * 2
    forwarded = server.requests[1]
    assert forwarded.path == "/?q=1"
    assert forwarded.headers == {"host": target, "connection": "close", "accept": "*/*"}


@attack(
    "An allowed name resolves to loopback, a private address or the metadata service",
    surface="network",
    with_sandbox="the proxy refuses the address, unless http.allow permits it",
    without_sandbox="such a program does not start",
)
@attack(
    "A program with named hosts connects to another host, port, subdomain or address",
    surface="network",
    with_sandbox="refused with 403, and logged with the setting that would allow it",
    without_sandbox="such a program does not start",
)
async def test_other_hosts_ports_and_private_addresses_are_refused(server: FaultyServer) -> None:
    names = {
        "meta.test": "169.254.169.254",
        "in.test": "10.0.0.7",
        "v6.test": "fd00:ec2::254",
        "mapped.test": "::ffff:127.0.0.1",
        "lo.test": "127.0.0.1",
    }
    allowed = [f"{name}:{server.port}" for name in (*names, "*.deep.test")]
    async with served(*allowed, f"127.0.0.1:{server.port}", names=names) as client:
        for host in (*names, "127.0.0.1"):
            assert await client.status(f"CONNECT {host}:{server.port} HTTP/1.1") == 403
        assert "169.254.169.254 (of meta.test) is a link-local address" in client.lines[0]
        assert f'http.allow = ["meta.test:{server.port}"]' in client.lines[0]
        assert client.resolved == list(names), "an address is not resolved"
        client.lines.clear()
        others = (
            "other.test",
            "deep.test",
            "evildeep.test",
            "xlo.test",
            "x.lo.test",
            "lo.test.evil",
        )
        for host in others:
            assert await client.status(f"CONNECT {host}:{server.port} HTTP/1.1") == 403
        assert await client.status(f"CONNECT lo.test:{server.port + 1} HTTP/1.1") == 403
        assert await client.status(f"GET http://lo.test/ HTTP/1.1\r\nHost: a:{server.port}") == 403
        assert client.resolved == list(names), "a name that is not allowed is not resolved"
        name = f"other.test:{server.port}"
        assert client.lines[0] == (
            f'refused: {name} is not allowed; to allow it, add "{name}" to {SETTING}'
        )
    assert server.requests == []


async def test_refusals_are_reported_once_for_a_host_and_for_few_hosts() -> None:
    async with served("a.test") as client:
        for number in range(proxy_server.MAX_LINES + 5):
            for _ in range(2):
                assert await client.status(f"CONNECT h{number}.test:443 HTTP/1.1") == 403
    assert len(client.lines) == proxy_server.MAX_LINES + 1
    assert client.lines[-1] == "further problems are not shown"


@attack(
    "A program confuses the proxy by malformed requests, users in URLs or another Host",
    surface="network",
    with_sandbox="refused; the host of the request line alone counts",
    without_sandbox="such a program does not start",
)
@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET / HTTP/1.1", 400),
        ("CONNECT a.test HTTP/1.1", 400),
        ("CONNECT *.a.test:443 HTTP/1.1", 400),
        ("CONNECT a.test:443@b.test:443 HTTP/1.1", 400),
        ("GET https://a.test/ HTTP/1.1", 400),
        ("GET http://user@a.test/ HTTP/1.1", 400),
        ("GET http://a.test:x/ HTTP/1.1", 400),
        ("GET http:///x HTTP/1.1", 400),
        ("CONNECT a.test:443 HTTP/9", 400),
        ("\x16\x03\x01", 400),
        ("GET http://a.test/ HTTP/1.1\r\nConnection: x\r\n Host: b.test", 400),
        ("GET http://a.test/ HTTP/1.1\r\nX: 1\nHost: b.test", 400),
        ("GET http://a.test/ HTTP/1.1\r\nHost : b.test", 400),
        ("CONNECT a.test:443 HTTP/1.1\r\nX: " + "x" * proxy_server.MAX_HEAD, 431),
    ],
)
async def test_other_requests_are_refused(head: str, status: int) -> None:
    async with served("a.test") as client:
        assert await client.status(head) == status
        assert client.resolved == []


async def test_a_head_that_does_not_arrive_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxy_server, "HEAD_TIMEOUT", 0.05)
    async with served("a.test") as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(b"CONNECT a.test:4")
        async with asyncio.timeout(DEADLINE):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.close()


@attack(
    "A program holds an unlimited number of connections open",
    surface="network",
    with_sandbox="100 at a time, which end without a byte for the idle timeout",
    without_sandbox="such a program does not start",
)
async def test_connections_are_limited_and_idle_connections_end(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_server, "MAX_CONNECTIONS", 2)
    target = f"127.0.0.1:{server.port}"
    async with served(target, allow=[target], idle=0.3) as client:
        connect = f"CONNECT {target} HTTP/1.1"
        opened = [await client.open(connect) for _ in range(2)]
        assert await client.status(connect) == 503
        async with asyncio.timeout(DEADLINE):
            for _, reader, writer in opened:
                assert await reader.read() == b""
                writer.close()
        assert client.lines == [f"{target}: no byte for 0.3 s (idle limit)"]
        assert (await client.get(target)).endswith(b"hello")


async def test_a_program_that_reads_nothing_holds_no_connection(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy_server, "MAX_CONNECTIONS", 1)
    server.routes["/"] = answer(b"x" * 32 * 1024 * 1024)
    target = f"127.0.0.1:{server.port}"
    connect = f"CONNECT {target} HTTP/1.1"
    for limit, status in ((DEADLINE, 503), (0.05, 200)):
        monkeypatch.setattr(program_connections, "CLOSE_TIMEOUT", limit)
        async with served(target, allow=[target], idle=1.0) as client:
            _, _, writer = await client.open(connect)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")

            async def ended(lines: list[str] = client.lines) -> bool:
                return bool(lines)

            async def expected(client: Client = client, status: int = status) -> bool:
                return await client.status(connect) == status

            await until(ended, "the idle limit")
            await until(expected, f"the status {status}")
        writer.close()


async def test_a_client_that_vanishes_ends_the_connection_to_the_host(
    server: FaultyServer,
) -> None:
    ended = asyncio.Event()

    async def until_the_end(_: object, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()
        except OSError:
            ended.set()
            raise

    server.routes["/"] = until_the_end
    target = f"127.0.0.1:{server.port}"
    async with served(target, allow=[target]) as client:
        _, reader, writer = await client.open(f"CONNECT {target} HTTP/1.1")
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read(10)
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()
        await asyncio.wait_for(ended.wait(), DEADLINE)


async def test_the_connections_of_a_run_end_with_it(server: FaultyServer) -> None:
    target = f"127.0.0.1:{server.port}"
    async with served(target, allow=[target]) as client:
        _, reader, writer = await client.open(f"CONNECT {target} HTTP/1.1")
    async with asyncio.timeout(DEADLINE):
        assert await reader.read() == b""
    writer.close()


async def test_an_unreachable_host_is_a_502(server: FaultyServer) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{unused.getsockname()[1]}"
        async with served(target, allow=[target]) as client:
            assert await client.status(f"CONNECT {target} HTTP/1.1") == 502
    assert client.lines == [f"{target}: Connection refused"]


async def test_the_proxy_of_the_configuration_resolves_the_names(server: FaultyServer) -> None:
    """A chain of two proxies: the second is the http.proxy of the first."""
    target = f"mirror.test:{server.port}"
    names = {"mirror.test": "127.0.0.1"}
    async with served(target, names=names, allow=["mirror.test"]) as second:
        url = f"http://127.0.0.1:{second.port}"
        hosts = (target, "refused.test:1", f"10.0.0.1:{server.port}")
        async with served(*hosts, proxy=url) as first:
            assert (await first.get(target)).endswith(b"hello")
            assert first.resolved == []
            assert await first.status("CONNECT refused.test:1 HTTP/1.1") == 502
            assert await first.status(f"CONNECT 10.0.0.1:{server.port} HTTP/1.1") == 403
            assert first.lines[0] == f"http.proxy {url}: HTTP/1.1 403 Forbidden"

    async def counted() -> bool:
        return second.proxy.usage[target].connections == 1

    await until(counted, "a connection")
