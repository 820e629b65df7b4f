"""A network between a worker and the database that can drop all packets without a reset."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from draftsman.database.embedded import EmbeddedServer

CHUNK: Final = 64 * 1024
LOOPBACK: Final = "127.0.0.1"


@dataclass(slots=True)
class SilentNetwork:
    """A TCP port that forwards connections to the server's socket, unless it is `silence`d.

    While it is silent, new connections get no reply, and those that are open neither get nor lose
    anything: the kernel still acknowledges what is sent, as a router with full buffers would, so
    that only a time limit of the client's own ends a wait.
    """

    server: EmbeddedServer
    port: int = 0
    _audible: asyncio.Event = field(default_factory=asyncio.Event)
    _sessions: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The URL of the database through this network."""
        socket = self.server.status().socket_dir
        direct_url = self.server.url()
        with_host = direct_url.replace(f"host={quote(str(socket), safe='')}", f"host={LOOPBACK}")
        return with_host.replace("port=5432", f"port={self.port}")

    @property
    def is_silent(self) -> bool:
        """Whether packets are dropped."""
        return not self._audible.is_set()

    def silence(self) -> None:
        """Drop all packets from now on."""
        self._audible.clear()

    def restore(self) -> None:
        """Forward packets again, also those of open connections."""
        self._audible.set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Listen during the block."""
        self._audible.set()
        listener = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listener.close()
            for session in self._sessions:
                session.cancel()
            await asyncio.gather(*self._sessions, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = asyncio.create_task(self._forward(reader, writer))
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            await self._audible.wait()
            socket = Path(self.server.status().socket_dir, ".s.PGSQL.5432")
            replies, requests = await asyncio.open_unix_connection(str(socket))
            with contextlib.closing(requests):
                ways = {
                    asyncio.create_task(self._copy(reader, requests)),
                    asyncio.create_task(self._copy(replies, writer)),
                }
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(CHUNK):
            await self._audible.wait()
            target.write(data)
            await target.drain()
        await self._audible.wait()  # the end of a connection is a packet, too
