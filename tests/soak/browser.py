"""A headless Chromium, controlled with its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,700",
    "--remote-debugging-port=0",
)

COLOURS = """(async () => {
  const data = await fetch("data:image/png;base64,%s");
  const picture = await createImageBitmap(await data.blob());
  const lines = %d, high = %d / lines;
  const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  canvas.drawImage(picture, 0, 0);
  return [...Array(lines).keys()].map((line) => {
    const part = canvas.getImageData(0, Math.round(line * high), picture.width - 20, high);
    return new Set(new Uint32Array(part.data.buffer)).size;
  });
})()"""
"""Counts the colors of each line in a picture of a terminal, on a page that may run anything."""


def find_chromium() -> str | None:
    """Return the program, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """A tab: its commands, events and errors."""

    def __init__(
        self, socket: ClientWebSocketResponse, target: str, blank: Page | None = None
    ) -> None:
        self.target = target
        self._blank = blank or self
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._socket = socket
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    async def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; return its result."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        return await asyncio.wait_for(self._waiting[number], 30)

    async def evaluate(self, script: str) -> Any:
        """Return the result of a script, or of its promise."""
        result = await self.tell(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def go(self, address: str) -> None:
        """Open an address."""
        await self.tell("Page.navigate", url=address)

    async def press(self, text: str) -> None:
        """Type characters, a key each."""
        for char in text:
            key = {"\r": {"key": "Enter", "windowsVirtualKeyCode": 13}}.get(char, {"key": char})
            await self.tell("Input.dispatchKeyEvent", type="keyDown", text=char, **key)
            await self.tell("Input.dispatchKeyEvent", type="keyUp", **key)

    async def inked(self, lines: int) -> list[bool]:
        """Return for each line of the terminal whether its picture has several colors."""
        picture = (await self.tell("Page.captureScreenshot", format="png"))["data"]
        height = await self.evaluate("document.querySelector('.xterm-screen').clientHeight")
        find_chromium = await self._blank.evaluate(COLOURS % (picture, lines, height))
        return [colours > 1 for colours in find_chromium]

    def cells(self) -> tuple[int, int]:
        """Return the columns and lines with which its last websocket was opened."""
        opened = [params["url"] for name, params in self.events if name.endswith("SocketCreated")]
        query = parse_qs(urlsplit(opened[-1]).query) if opened else {}
        return int(query.get("width", ["80"])[0]), int(query.get("height", ["24"])[0])

    def received(self) -> bytes:
        """Return all data received over websockets in binary frames."""
        frames = [
            params["response"]["payloadData"]
            for method, params in self.events
            if method == "Network.webSocketFrameReceived" and params["response"]["opcode"] == 2
        ]
        return b"".join(map(base64.b64decode, frames))

    def requested(self) -> list[str]:
        """Return the requested addresses."""
        return [
            params["request"]["url"]
            for method, params in self.events
            if method == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return errors, and violations of the page's policy."""
        return [
            json.dumps(params)
            for method, params in self.events
            if method == "Runtime.exceptionThrown"
            or (method == "Log.entryAdded" and params["entry"]["level"] == "error")
        ]

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                continue
            message_data = message.json()
            if "id" in message_data:
                self._waiting.pop(message_data["id"]).set_result(
                    message_data.get("result") or message_data
                )
            else:
                self.events.append((message_data["method"], message_data["params"]))


class Browser:
    """Opens tabs and closes them."""

    def __init__(self, session: ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def open(self, address: str) -> Page:
        """Open a tab on an address."""
        page = await self._tab(await self._tab())
        for domain in ("Page", "Network", "Runtime", "Log"):
            await page.tell(f"{domain}.enable")
        await page.go(address)
        return page

    async def _tab(self, blank: Page | None = None) -> Page:
        async with self._session.put(f"{self._address}/json/new?about:blank") as response:
            target = await response.json(content_type=None)
        socket = await self._session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0)
        return Page(socket, target["id"], blank)

    async def close(self, page: Page) -> None:
        """Close a tab."""
        async with self._session.get(f"{self._address}/json/close/{page.target}") as response:
            response.raise_for_status()


@asynccontextmanager
async def browsing(program: str, folder: Path) -> AsyncIterator[Browser]:
    """Start a browser with an empty profile in that folder."""
    process = await asyncio.create_subprocess_exec(
        program, *FLAGS, f"--user-data-dir={folder}", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        port = await _port(process, folder / "DevToolsActivePort")
        async with ClientSession() as session:
            yield Browser(session, f"http://127.0.0.1:{port}")
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _port(process: Process, file: Path) -> int:
    async with asyncio.timeout(30):
        while not (file.exists() and file.read_text().count("\n")):
            assert process.returncode is None, f"chromium ended with {process.returncode}"
            await asyncio.sleep(0.05)
    return int(file.read_text().split("\n")[0])
