"""Databases of tests: on a server of the tests, or on an embedded server of their own."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

from draftsman.database import migrate
from draftsman.database.embedded import EmbeddedServer

TEST_URL: Final = "DRAFTSMAN_TEST_URL"
"""Variable with the URL of the PostgreSQL of the tests, as a superuser; by default the embedded."""
IDLE_STOP: Final = 900.0
"""Seconds after which the server of a killed session stops by itself."""
MakeDatabase = Callable[[], str]
"""Creates a database with the schema of draftsman and of the installed plugins; returns its URL."""


@contextmanager
def temporary_databases() -> Iterator[MakeDatabase]:
    """Provide databases, which are dropped at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="draftsman-test-") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        server = EmbeddedServer(Path(folder), IDLE_STOP)
        url = os.environ.get(TEST_URL) or server.ensure()
        names: list[str] = []

        def make() -> str:
            name = f"test_{uuid4().hex}"
            template = names[0] if names else "template0"
            _execute(url, "CREATE DATABASE {} TEMPLATE {}", name, template)
            names.append(name)
            return urlsplit(url)._replace(path=f"/{name}").geturl()

        with ThreadPoolExecutor(1) as pool:  # its event loop is not that of the tests
            pool.submit(lambda: asyncio.run(migrate.migrate(make()))).result()
        yield make
        for name in names:
            _execute(url, "DROP DATABASE {} WITH (FORCE)", name)
        server.stop()


def set_clock(url: str, seconds: float) -> None:
    """Let the clock of a database differ by seconds from that of its server, in new sessions."""
    name = urlsplit(url).path.removeprefix("/")
    statement = sql.SQL("ALTER DATABASE {} SET draftsman.clock_offset = {}")
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement.format(sql.Identifier(name), f"{seconds} seconds"))


def _execute(url: str, statement: LiteralString, *names: str) -> None:
    server = urlsplit(url)._replace(path="/postgres").geturl()
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
