"""A proxy to the server for sessions of a worker, whose connections a test can drop or silence."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from draftsman.database.database import Database
from draftsman.runtime import ENUMS
from draftsman.settings.database import DatabaseSettings

CHUNK = 64 * 1024


class CuttableProxy:
    """Forwards sessions to a server until they are cut."""

    def __init__(self, url: str, folder: str) -> None:
        self._server = conninfo_to_dict(url)
        self._folder = folder
        self._sessions: set[asyncio.Task[None]] = set()
        self._up = True
        self._silent = False
        self._unheard: bytes | None = None
        self._asked: bytes | None = None
        self._often: bytes | None = None
        self._heard = False
        self.refused = 0
        """Number of refused sessions."""
        self.errors = 0
        """Errors in replies of the server."""
        self.lost = asyncio.Event()
        """Set once a reply was lost."""

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        parts = {key: str(value) for key, value in self._server.items() if key != "hostaddr"}
        return make_conninfo("", **parts | {"host": self._folder, "port": "5432"})

    def cut(self) -> None:
        """Drop every session, and refuse new sessions."""
        self._up = False
        for session in self._sessions:
            session.cancel()

    def drop_packets(self) -> None:
        """Forward nothing any more, and close nothing, also in new sessions."""
        self._silent = True

    def mend(self) -> None:
        """Accept and forward new sessions again."""
        self._up = True
        self._silent = False

    def drop_reply(self, containing: bytes) -> None:
        """Drop the session whose next reply contains this, after the server's execution."""
        self._unheard = containing

    def drop_reply_to(self, containing: bytes) -> None:
        """Drop the session that sends this next, after the server executed it."""
        self._asked = containing

    def drop_every_other_reply_to(self, containing: bytes) -> None:
        """Drop every other session that sends this, after the server executed it."""
        self._often = containing
        self._heard = True

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a session."""
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):
            self.refused += not self._up
            if self._up:
                await self._join(reader, writer)
        self._sessions.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await self._connect()
        dropped = asyncio.Event()
        ways = [self._ask(reader, to_server, dropped), self._reply(from_server, writer, dropped)]
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host = str(self._server["host"])
        port = int(self._server.get("port") or 5432)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _ask(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, dropped: asyncio.Event
    ) -> None:
        while data := await source.read(CHUNK):
            if self._silent:
                continue
            if self._asked is not None and self._asked in data:
                self._asked = None
                dropped.set()
            if self._often is not None and self._often in data:
                self._heard = not self._heard
                if not self._heard:
                    dropped.set()
            target.write(data)
            await target.drain()

    async def _reply(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, dropped: asyncio.Event
    ) -> None:
        while data := await source.read(CHUNK):
            if self._silent:
                continue
            self.errors += b"ERROR\0" in data
            if self._unheard is not None and self._unheard in data:
                self._unheard = None
                dropped.set()
            if dropped.is_set():
                self.lost.set()
                return
            target.write(data)
            await target.drain()


@asynccontextmanager
async def open_proxied(url: str, **settings: Any) -> AsyncIterator[tuple[CuttableProxy, Database]]:
    """Give a proxy to a database, and a pool that detects a dropped connection in a second."""
    with tempfile.TemporaryDirectory() as folder:
        proxy = CuttableProxy(url, folder)
        server = await asyncio.start_unix_server(proxy.pass_on, Path(folder, ".s.PGSQL.5432"))
        values = {"connect_timeout": 1, "pool_size": 20} | settings
        db = Database(proxy.url, DatabaseSettings.model_validate(values), enums=ENUMS)
        try:
            await db.open()
            yield proxy, db
        finally:
            await db.close()
            proxy.cut()
            server.close()
            await server.wait_closed()
