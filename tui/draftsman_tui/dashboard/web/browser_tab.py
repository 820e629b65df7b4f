"""One browser tab: a dashboard of its own, started with it and ended with it."""

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
from draftsman_tui.common.output import plain

GRACE: Final = 5.0
"""Seconds after which a dashboard that was told to end is killed."""
BEGIN: Final = b"__GANGLION__\n"
"""What Textual's web driver writes before its first packet."""
HEAD: Final = 5
"""Bytes before the payload of a packet: its kind, and its size as four bytes, big end first."""
_log = logging.getLogger(__name__)


class BrowserTab(AppService):
    """The process behind a websocket; textual-serve knows the packets between them."""

    def __init__(self, command: Sequence[str], socket: web.WebSocketResponse) -> None:
        super().__init__(
            command[0],
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=_closing(socket),
            download_manager=DownloadManager(),
        )
        self._words = command
        self._stopping: asyncio.Task[None] | None = None

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start it; Ctrl-C on our terminal reaches it through us alone."""
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        _log.info("a tab was opened", extra=keys(pid=self._process.pid))
        return self._process

    async def run(self) -> None:
        """Pass on what it shows; when it ends say why, and close the socket."""
        process = self._process
        assert process is not None  # noqa: S101 - `start` made it
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        saying = asyncio.create_task(process.stderr.read())
        try:
            with contextlib.suppress(IncompleteReadError, ConnectionError):
                await self._pass_on(process.stdout)
            said = (await saying).decode("utf-8", "replace").strip()
            code = await process.wait()
            _log.info("a tab was closed", extra=keys(pid=process.pid))
            if code:
                _log.warning(
                    "its dashboard ended with %s: %s", code, said, extra=keys(pid=process.pid)
                )
                await self._explain(said or f"the dashboard ended with {code}")
        finally:
            saying.cancel()
            await self.remote_close()

    async def stop(self) -> None:
        """End it, in the end by force; whoever asks is told when it has ended."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        if self._task is None or self._process is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self.send_meta({"type": "quit"})
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _pass_on(self, shown: StreamReader) -> None:
        await shown.readuntil(BEGIN)
        while True:
            head = await shown.readexactly(HEAD)
            payload = await shown.readexactly(int.from_bytes(head[1:], "big"))
            match head[:1]:
                case b"D":
                    await self.on_data(payload)
                case b"M":
                    await self.on_meta(payload)

    async def _explain(self, text: str) -> None:
        """Write the reason over what was shown."""
        with contextlib.suppress(ConnectionError):
            lines = plain(text).replace("\n", "\r\n")
            await self.remote_write_bytes(f"\x1b[?1049l\x1b[2J\x1b[H{lines}\r\n".encode())


def _closing(socket: web.WebSocketResponse) -> Any:
    async def close() -> None:
        await socket.close()

    return close
