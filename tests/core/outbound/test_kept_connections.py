"""Connections that a client of a single host keeps."""

from __future__ import annotations

import asyncio

from draftsman.jobs.retries import RetryPolicy
from draftsman.outbound.http_client import HttpCall, HttpClient
from draftsman.outbound.timeouts import Timeouts
from draftsman.settings.http import HttpSettings
from draftsman_testing.waits import until

REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Site:
    """A server that keeps connections, and counts them."""

    def __init__(self) -> None:
        self.opened = self.open = 0
        self.heads: list[bytes] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened = self.opened + 1
        self.open = self.open + 1
        self.writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head.lower())
                writer.write(REPLY)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def none_open(self) -> bool:
        return self.open == 0


async def test_calls_use_a_kept_connection_until_it_is_closed() -> None:
    site = Site()
    async with await asyncio.start_server(site.serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        timeouts = Timeouts.of(RetryPolicy())

        async def fetch(client: HttpClient) -> bytes:
            async with client.stream(HttpCall("GET", url), timeouts) as response:
                return await response.read()

        keeping = HttpClient(HttpSettings(), trusted=[url], keep=1)
        assert [await fetch(keeping) for _ in range(3)] == [b"ok"] * 3
        assert (site.opened, site.open) == (1, 1)
        assert b"connection: close" not in site.heads[0]
        site.writers[0].close()
        await until(site.none_open, "the server has closed it")
        assert await fetch(keeping) == b"ok"
        assert (site.opened, site.open) == (2, 1)
        await keeping.close()
        await until(site.none_open, "the client has closed it")
        plain = HttpClient(HttpSettings(), trusted=[url])
        assert [await fetch(plain) for _ in range(2)] == [b"ok"] * 2
        assert site.opened == 4
        assert b"connection: close" in site.heads[-1]
        await until(site.none_open, "the client keeps none")
