"""The dashboard as a page, and a browser's part of it: the websocket behind a tab."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pyte
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from draftsman_tui.dashboard.web.server import Web
from tests.tui.cli.cli_runner import COMMAND, DEADLINE

SIZE = (100, 30)


class Tab:
    """Screen and keyboard of a browser tab."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.closed = False
        self._socket = socket
        self._drawn = pyte.Screen(*SIZE)
        self._stream = pyte.ByteStream(self._drawn)

    @property
    def text(self) -> str:
        """Text of the screen."""
        return "\n".join(line.rstrip() for line in self._drawn.display)

    async def see(self, *text: str) -> None:
        """Wait until all texts are on the screen."""
        try:
            async with asyncio.timeout(DEADLINE):
                while not all(word in self.text for word in text):
                    await self._look()
        except TimeoutError:
            raise AssertionError(f"{text} is not on the screen:\n{self.text}") from None

    async def ended(self) -> None:
        """Wait until the server closes it."""
        async with asyncio.timeout(DEADLINE):
            while not self.closed:
                await self._look()

    async def type(self, text: str) -> None:
        """Press keys."""
        await self._socket.send_json(["stdin", text])

    async def close(self) -> None:
        """Close the tab."""
        await self._socket.close()

    async def _look(self) -> None:
        assert not self.closed, f"it was closed:\n{self.text}"
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            self._stream.feed(message.data)
        self.closed = message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.CLOSING)


def socket_of(address: str) -> str:
    """Return the websocket of the page at an address."""
    return f"{address}ws?width={SIZE[0]}&height={SIZE[1]}"


def origin_of(address: str) -> str:
    """Return the Origin header of a page."""
    return address.rsplit("/", 2)[0]


@asynccontextmanager
async def tab(address: str) -> AsyncIterator[Tab]:
    """Open a tab on the page at an address."""
    async with (
        ClientSession() as session,
        session.ws_connect(socket_of(address), origin=origin_of(address)) as socket,
    ):
        yield Tab(socket)


@asynccontextmanager
async def served(config: Path, *options: str) -> AsyncIterator[str]:
    """Serve dashboards from this process; gives the address."""
    command = [*COMMAND, "--config", str(config), "dashboard", *options]
    async with Web([*command, "--parent", str(os.getpid())], 0).serving() as address:
        yield address


def dashboards(of: int | None = None) -> list[psutil.Process]:
    """Return the dashboards started by a process, by default this process."""
    children: list[psutil.Process] = psutil.Process(of).children()
    return [child for child in children if "dashboard" in child.cmdline()]
