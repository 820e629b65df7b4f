"""Web server: the page, its static files, and a WebSocket for each tab."""

from __future__ import annotations

import asyncio
import errno
import secrets
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from string import Template
from typing import Final

import textual_serve
from aiohttp import WSMsgType, web

from draftsman.errors import UsageError
from draftsman_tui.dashboard.web.browser_tab import BrowserTab
from draftsman_tui.dashboard.web.guard import guard

HOST: Final = "127.0.0.1"
FILES: Final = Path(textual_serve.__file__).parent / "static"
"""Browser terminal of textual-serve, with its style sheet and font."""
PAGE: Final = Path(__file__).parent / "page.html"
SCRIPT: Final = PAGE.with_suffix(".js")
HEARTBEAT: Final = 15.0
"""Seconds between WebSocket pings."""
MAX_CELLS: Final = 999
"""Maximum columns and lines of a tab."""


class Web:
    """Serves dashboards on loopback, running `command` for each tab."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.stopped = asyncio.Event()
        self.address = ""
        self._command = command
        self._port = port
        self._secret = secrets.token_urlsafe(24)
        self._once = ""
        self._tabs = set[BrowserTab]()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serve inside the context, yielding the URL; raises UsageError if the port is in use."""
        runner = web.AppRunner(self._routes(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._listen(runner)
            yield self.address
        finally:
            for site in list(runner.sites):
                await site.stop()
            await asyncio.gather(*(tab.stop() for tab in self._tabs))
            await runner.cleanup()

    def stop(self) -> None:
        """Stop serving."""
        self.stopped.set()

    def open_browser(self) -> None:
        """Open a one-time URL, since other users can see the browser's arguments."""
        self._once = secrets.token_urlsafe(24)
        webbrowser.open(f"http://{HOST}:{self._port}/open/{self._once}")

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, HOST, self._port).start()
        except OSError as error:
            reason = (
                "is in use" if error.errno == errno.EADDRINUSE else f"is not available: {error}"
            )
            raise UsageError(
                f"port {self._port} {reason}; choose another with --port, or 0 for any free port"
            ) from None
        self._port = runner.addresses[0][1]
        self.address = f"http://{HOST}:{self._port}/{self._secret}/"

    def _routes(self) -> web.Application:
        app = web.Application(middlewares=[guard])
        app.router.add_get(f"/{self._secret}/", self._page)
        app.router.add_get(f"/{self._secret}/ws", self._socket)
        app.router.add_get(f"/{self._secret}/page.js", self._script)
        app.router.add_static(f"/{self._secret}/static", FILES)
        app.router.add_get("/open/{once}", self._open)
        return app

    async def _open(self, request: web.Request) -> web.Response:
        once, self._once = self._once, ""
        if not once or not secrets.compare_digest(once, request.match_info["once"]):
            raise web.HTTPNotFound
        raise web.HTTPFound(self.address)

    async def _page(self, request: web.Request) -> web.Response:
        page = Template(PAGE.read_text(encoding="utf-8"))
        text = page.substitute(socket=f"ws://{request.host}/{self._secret}/ws")
        return web.Response(text=text, content_type="text/html")

    async def _script(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(SCRIPT)

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT)
        await socket.prepare(request)
        tab = BrowserTab(self._command, socket)
        self._tabs.add(tab)
        try:
            await tab.start(_cells(request, "width", 80), _cells(request, "height", 24))
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await _handle_message(tab, socket, message.json())
        finally:
            await tab.stop()
            self._tabs.discard(tab)
        return socket


async def _handle_message(tab: BrowserTab, socket: web.WebSocketResponse, message: object) -> None:
    """Handle a message of the page: input, resize, ping or focus."""
    match message:
        case ["stdin", str(text)]:
            await tab.send_bytes(text.encode())
        case ["resize", {"width": int(width), "height": int(height)}]:
            if 0 < width <= MAX_CELLS and 0 < height <= MAX_CELLS:
                await tab.set_terminal_size(width, height)
        case ["ping", sent]:
            await socket.send_json(["pong", sent])
        case ["focus"]:
            await tab.focus()
        case ["blur"]:
            await tab.blur()


def _cells(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 4 and int(text) > 0 else default
