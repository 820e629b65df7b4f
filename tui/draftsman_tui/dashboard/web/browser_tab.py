"""Browser tab with its own dashboard process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio import IncompleteReadError, StreamReader
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from draftsman.log import keys
from draftsman_tui.terminal.output import plain

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
