"""Socket Mode: the app's open sockets, their envelopes and their faults."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import WSMsgType, web

from draftsman_testing import waits
from draftsman_testing.slack.world import Json, World

SOCKETS_MOST: Final = 10
LIFE: Final = 18_060
"""Lifetime that Slack announces, in seconds; it is not enforced here."""


@dataclass(eq=False)
class Link:
    """A socket. A silent socket is half-open: it neither receives nor sends."""

    socket: web.WebSocketResponse
    transport: asyncio.Transport | None
    silent: bool = False
    pending: dict[str, list[asyncio.Future[Any]]] = field(default_factory=dict)
    """Futures of the acks of envelopes: the payload of the ack, or NOTHING."""


class _Nothing:
    """There will be no ack."""


NOTHING: Final = _Nothing()


class Sockets:
    """All sockets, in order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._links: list[Link] = []
        self._turn = itertools.count()
        self._changed = asyncio.Event()
        self.opened = 0
        """Number of sockets in total."""
        self.acks: list[str] = []
        """The acknowledged envelopes, in order."""
        self.mute = 0
        """Number of the next sockets that answer pings only."""

    @property
    def count(self) -> int:
        """Return the number of open sockets."""
        return len(self._links)

    async def wait(self, count: int = 1, opened: int = 0) -> None:
        """Wait until exactly this many are open, and at least this many were opened in total."""
        async with asyncio.timeout(waits.DEADLINE):
            while self.count != count or self.opened < opened:
                self._changed.clear()
                await self._changed.wait()

    async def connected(self) -> None:
        """Wait, without a deadline, until a socket is open."""
        while not self._links:
            self._changed.clear()
            await self._changed.wait()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve a socket until it ends."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._world.tickets:
            return web.Response(status=404, text="link not found")
        self._world.tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        if self.count >= SOCKETS_MOST:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await socket.close()
            return socket
        link = Link(socket, request.transport)
        self._links.append(link)
        self.opened += 1
        try:
            if self.mute:
                self.mute -= 1
            else:
                await socket.send_json(self._hello())
            self._changed.set()
            await self._listen(link)
        finally:
            self._end(link)
        return socket

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": self.count,
            "debug_info": {"host": "applink-fake", "approximate_connection_time": LIFE},
            "connection_info": {"app_id": self._world.app},
        }

    async def _listen(self, link: Link) -> None:
        async for message in link.socket:
            if link.silent:
                continue
            if message.type == WSMsgType.PING:
                await link.socket.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._ack(message.data)

    def _ack(self, text: str) -> None:
        content = json.loads(text)
        envelope = content.get("envelope_id", "")
        self.acks.append(envelope)
        for link in self._links:
            if waiting := [item for item in link.pending.get(envelope, []) if not item.done()]:
                waiting[0].set_result(content.get("payload"))
                return

    def _end(self, link: Link) -> None:
        if link not in self._links:
            return
        self._links.remove(link)
        for waiting in link.pending.values():
            for item in waiting:
                if not item.done():
                    item.set_result(NOTHING)
        link.pending.clear()
        self._changed.set()

    async def send(self, envelope: Json, patience: float) -> Any:
        """Send an envelope through any socket; return the payload of its ack, or NOTHING."""
        try:
            async with asyncio.timeout(patience):
                return await self._sent(envelope)
        except TimeoutError:
            return NOTHING

    async def _sent(self, envelope: Json) -> Any:
        await self.connected()
        link = self._links[next(self._turn) % len(self._links)]
        waiting = link.pending.setdefault(envelope["envelope_id"], [])
        ack: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        waiting.append(ack)
        try:
            if not link.silent:
                await link.socket.send_json(envelope)
            return await ack
        except ConnectionError:
            self._end(link)  # otherwise a retry at once could choose it again
            return NOTHING
        finally:
            if ack in waiting:
                waiting.remove(ack)

    async def disconnect(self, reason: str = "refresh_requested", index: int | None = None) -> None:
        """Ask the app to disconnect: warning, refresh_requested or link_disabled."""
        for link in self._chosen(index):
            content = {
                "type": "disconnect",
                "reason": reason,
                "debug_info": {"host": "applink-fake"},
            }
            await link.socket.send_json(content)

    async def close(self, index: int | None = None) -> None:
        """Close the socket cleanly."""
        for link in self._chosen(index):
            self._end(link)
            await link.socket.close()

    def drop(self, index: int | None = None) -> None:
        """Cut the connection, as a network does."""
        for link in self._chosen(index):
            self._end(link)
            if link.transport is not None:
                link.transport.abort()

    def silence(self, index: int | None = None) -> None:
        """Leave the connection open and send nothing any more, not even a pong."""
        for link in self._chosen(index):
            link.silent = True

    def _chosen(self, index: int | None) -> list[Link]:
        return list(self._links) if index is None else [self._links[index]]
