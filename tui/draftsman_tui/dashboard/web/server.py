"""Web server: the page, its static files, and a WebSocket for each tab."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import secrets
import webbrowser
from asyncio import IncompleteReadError, StreamReader
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from string import Template
from typing import Any, Final
from urllib.parse import urlsplit

import textual_serve
from aiohttp import WSMsgType, web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from draftsman.errors import UsageError
from draftsman.log import keys
from draftsman_tui.terminal.output import plain

# Access checks. Loopback alone is not safe: other users and any web page can reach it.
#
# - The URL has a secret, which other users of the machine do not know.
# - `Host` must be a loopback name, which prevents DNS rebinding.
# - The `Origin` of a WebSocket must be this server, since browsers let any page open a WebSocket to
#   any host.
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'self'; connect-src 'self' {socket}; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data:;"
        " frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""No external resources, no framing by other pages, no referrer with the secret URL."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reject requests that do not come from this server's own page."""
    if reason := refusal(request):
        return web.Response(status=403, text=f"draftsman: {reason}\n")
    try:
        response = await handler(request)
    except web.HTTPNotFound:
        text = "draftsman: page not found; open the URL printed by `draftsman dashboard --web`"
        return web.Response(status=404, text=f"{text}\n")
    if not response.prepared:
        socket = f"ws://{request.host}"
        response.headers.update(
            {name: text.format(socket=socket) for name, text in HEADERS.items()}
        )
    return response


def refusal(request: web.Request) -> str:
    """Return why a request is rejected; empty if it is allowed."""
    if urlsplit(f"//{request.host}").hostname not in LOOPBACK:
        return f"host {request.host[:100]!r} is not allowed; open the dashboard as 127.0.0.1"
    origin = request.headers.get("Origin")
    if origin not in (None, f"http://{request.host}"):
        return "requests from other origins are not allowed"
    if origin is None and request.headers.get("Upgrade", "").lower() == "websocket":
        return "a WebSocket request needs an Origin header"
    return ""


STOP_TIMEOUT: Final = 5.0
"""Seconds to wait for a dashboard to exit before it is killed."""
STARTED_MARK: Final = b"__GANGLION__\n"
"""Output of Textual's web driver before the first packet."""
PACKET_HEADER: Final = 5
"""Header bytes of a packet: type, and size as four big-endian bytes."""
_log = logging.getLogger(__name__)


class BrowserTab(AppService):
    """Dashboard process behind a WebSocket; textual-serve defines the packets between them."""

    def __init__(self, command: Sequence[str], socket: web.WebSocketResponse) -> None:
        super().__init__(
            command[0],
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=_closer(socket),
            download_manager=DownloadManager(),
        )
        self._command = command
        self._stopping: asyncio.Task[None] | None = None

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the process in its own session, shielded from Ctrl-C on the server's terminal."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        _log.info("browser tab opened", extra=keys(pid=self._process.pid))
        return self._process

    async def run(self) -> None:
        """Forward the output; when the process exits, show the reason and close the socket."""
        process = self._process
        assert process is not None  # noqa: S101 - `start` made it
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        stderr_task = asyncio.create_task(process.stderr.read())
        try:
            with contextlib.suppress(IncompleteReadError, ConnectionError):
                await self._forward(process.stdout)
            output = (await stderr_task).decode("utf-8", "replace").strip()
            code = await process.wait()
            _log.info("browser tab closed", extra=keys(pid=process.pid))
            if code:
                _log.warning(
                    "dashboard exited with status %s: %s", code, output, extra=keys(pid=process.pid)
                )
                await self._explain(output or f"dashboard exited with status {code}")
        finally:
            stderr_task.cancel()
            await self.remote_close()

    async def stop(self) -> None:
        """Stop the process, killing it after a timeout; returns once it has exited."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        if self._task is None or self._process is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                await self.send_meta({"type": "quit"})
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _forward(self, stdout: StreamReader) -> None:
        await stdout.readuntil(STARTED_MARK)
        while True:
            head = await stdout.readexactly(PACKET_HEADER)
            payload = await stdout.readexactly(int.from_bytes(head[1:], "big"))
            match head[:1]:
                case b"D":
                    await self.on_data(payload)
                case b"M":
                    await self.on_meta(payload)

    async def _explain(self, text: str) -> None:
        """Replace the screen by the reason."""
        with contextlib.suppress(ConnectionError):
            lines = plain(text).replace("\n", "\r\n")
            await self.remote_write_bytes(f"\x1b[?1049l\x1b[2J\x1b[H{lines}\r\n".encode())


def _closer(socket: web.WebSocketResponse) -> Any:
    async def close() -> None:
        await socket.close()

    return close


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
        once = self._once
        self._once = ""
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
