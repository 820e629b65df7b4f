"""Servers of the bench: a temporary server, and a new database for each figure."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

from psycopg import AsyncConnection, sql

from draftsman.database.embedded import EmbeddedServer

SERVER_URL = "DRAFTSMAN_BENCH_URL"
IDLE_STOP = 120.0
"""Seconds after which the server of a killed bench stops by itself."""
DEADLINE = 120.0
"""Seconds after which a missing result is an error."""
POLL = 0.005
"""Seconds between two polls for the end."""


class BenchError(Exception):
    """A broken promise, which makes the figures meaningless."""


class Session:
    """A connection that counts its statements, each of which is a transaction."""

    def __init__(self, conn: AsyncConnection[Any]) -> None:
        self.conn = conn
        self.asked = 0

    async def value(self, query: LiteralString, *params: Any) -> Any:
        """Return the first value of a query."""
        self.asked += 1
        row = await (await self.conn.execute(query, params or None)).fetchone()
        return None if row is None else row[0]

    async def until(self, query: LiteralString, what: str) -> None:
        """Wait until the query returns true; raises BenchError."""
        deadline = time.monotonic() + DEADLINE
        while await self.value(query) is not True:
            if time.monotonic() > deadline:
                raise BenchError(f"{what}: not within {DEADLINE:.0f} s")
            await asyncio.sleep(POLL)


class BenchServer:
    """A server with a template database for each queue."""

    def __init__(self, url: str, admin: Session) -> None:
        self._url = url
        self._prefix = f"bench_{uuid4().hex[:8]}"
        self.admin = admin
        """Connection to another database, so that it is in no count of a measured database."""

    def url(self, database: str) -> str:
        """Return the URL of a database on this server."""
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    def template(self, queue: str) -> str:
        """Return the name of a queue's template."""
        return f"{self._prefix}_{queue}"

    async def create(self, name: str) -> None:
        """Create an empty database."""
        await self._run("CREATE DATABASE {}", name)

    @asynccontextmanager
    async def database(self, queue: str) -> AsyncIterator[str]:
        """Create a database with the tables of a queue; yield its name."""
        name = f"{self.template(queue)}_{uuid4().hex[:8]}"
        await self.quiet(self.template(queue))
        await self._run("CREATE DATABASE {} TEMPLATE {}", name, self.template(queue))
        try:
            yield name
        finally:
            await self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    async def leave(self) -> None:
        """Remove all databases of the bench, also those of a killed run."""
        query: LiteralString = (
            "SELECT array_agg(datname::text) FROM pg_database WHERE datname ^@ %s"
        )
        for name in await self.admin.value(query, self._prefix) or ():
            await self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    async def quiet(self, database: str) -> None:
        """Wait until no session is connected, so that the statistics are complete."""
        deadline = time.monotonic() + DEADLINE
        query: LiteralString = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend'"
        )
        while await self.admin.value(query, database):
            if time.monotonic() > deadline:
                raise BenchError(f"another session stays connected to {database}")
            await asyncio.sleep(0.01)

    async def commits(self, database: str) -> int:
        """Return the number of committed transactions of an idle database."""
        await self.quiet(database)
        query: LiteralString = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
        return int(await self.admin.value(query, database))

    async def checkpoint(self) -> None:
        """Write a checkpoint, after which the WAL has a full image of each changed page."""
        await self.admin.conn.execute("CHECKPOINT")

    async def written(self) -> int:
        """Return the number of bytes of WAL that the server has written."""
        return int(await self.admin.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    async def _run(self, statement: LiteralString, *names: str) -> None:
        parts = map(sql.Identifier, names)
        await self.admin.conn.execute(sql.SQL(statement).format(*parts))


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a server: that of DRAFTSMAN_BENCH_URL, or a new server in a new folder."""
    if given := os.environ.get(SERVER_URL):
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="draftsman-bench-"))
    folder.chmod(0o755)  # as root, the server runs as another user, who needs access
    embedded = EmbeddedServer(folder, IDLE_STOP)
    try:
        embedded.ensure()
        yield embedded.secret_url()  # some drivers of peers read no password file
    finally:
        embedded.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def session(url: str) -> AsyncIterator[Session]:
    """Connect to a database."""
    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        yield Session(conn)
